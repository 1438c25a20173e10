import { cli } from './borders/cli.ts'
import { database } from './borders/database.ts'
import { events } from './borders/events.ts'
import { http } from './borders/http.ts'
import { model } from './borders/model.ts'
import { results } from './borders/results.ts'
import { schemas } from './borders/schemas.ts'
import { state } from './borders/state.ts'
import { views } from './borders/views.ts'
import type { Border } from './kit/border.ts'

/** Every border, by the order in which it is run. */
export const borders = (): Border[] => [results, http, views, cli, state, model, schemas, events, database] as Border[]
