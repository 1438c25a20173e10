import type { Admin, Kafka } from 'kafkajs'
import { translate } from './errors.ts'

/** Asks by an admin connection of its own. Errors come as kafkajs has them. */
export async function withAdmin<T>(kafka: Kafka, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = kafka.admin()
  try {
    await admin.connect()
    return await work(admin)
  } finally {
    await admin.disconnect().catch(() => {})
  }
}

/** As {@link withAdmin}, errors coded. @param path the topic, group or prefix asked about */
export async function asked<T>(kafka: Kafka, path: string, work: (admin: Admin) => Promise<T>): Promise<T> {
  try {
    return await withAdmin(kafka, work)
  } catch (error) {
    throw translate(error, path)
  }
}
