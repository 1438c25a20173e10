/** What a record of an edge topic says about itself. */
export interface CloudEvent {
  /** Together with `source` it names the event: equal whenever the record is made again. */
  id: string
  /** A URI reference. */
  source: string
  type: string
  subject?: string
  /** Epoch milliseconds. */
  time: number
}

/**
 * CloudEvents 1.0 attributes under their plain names: the headers of a record as this package holds them and SQLite keeps them. An
 * adapter gives them the names of its transport.
 */
export const cloudEvent = ({ id, source, type, subject, time }: CloudEvent): Record<string, string> => ({
  specversion: '1.0',
  id,
  source,
  type,
  // An empty subject is none.
  ...(subject && { subject }),
  time: isoTime(time),
  datacontenttype: 'application/json',
})

/** Any count is a time to the log; a date ends in the year 275760. */
const isoTime = (ms: number): string => new Date(Math.min(ms, 8.64e15)).toISOString()

/** `source` of what follows from the events of an application. */
export const applicationSource = (application: string): string => `/threadlog/${encodeURIComponent(application)}`
