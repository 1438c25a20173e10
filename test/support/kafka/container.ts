import {
  BoundPorts,
  GenericContainer,
  getContainerRuntimeClient,
  type InspectResult,
  type StartedTestContainer,
  Wait,
  waitForContainer,
} from 'testcontainers'
import { KAFKA_VERSION } from './version.ts'

export const IMAGE = `apache/kafka:${KAFKA_VERSION}`

/** Why no broker can be started in a container here; undefined if a Docker engine answers. */
export async function withoutDocker(): Promise<string | undefined> {
  try {
    await getContainerRuntimeClient()
    return undefined
  } catch {
    return 'no Docker engine answers'
  }
}

const PORT = 9092
const SCRIPT = '/tmp/start-broker.sh'
const START_MS = 120_000

const SETTINGS = {
  KAFKA_NODE_ID: '1',
  KAFKA_PROCESS_ROLES: 'broker,controller',
  KAFKA_LISTENERS: `HOST://0.0.0.0:${PORT},INTERNAL://0.0.0.0:19092,CONTROLLER://0.0.0.0:9093`,
  KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'HOST:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT',
  KAFKA_INTER_BROKER_LISTENER_NAME: 'INTERNAL',
  KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
  KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
  KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
  KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS: '1',
  KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
  KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
  KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS: '1',
  KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
  KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
}

/**
 * A broker must advertise the port by which it is reached, and Docker gives that out when the container runs. So the container first
 * waits for a script, and the script, brought when the port is known, starts the broker.
 */
class KafkaContainer extends GenericContainer {
  constructor() {
    super(IMAGE)
    this.withExposedPorts(PORT)
      .withEntrypoint(['/bin/sh', '-c'])
      .withCommand([`while [ ! -x ${SCRIPT} ]; do sleep 0.1; done; exec ${SCRIPT}`])
      .withEnvironment(SETTINGS)
      .withWaitStrategy(Wait.forListeningPorts())
      .withStartupTimeout(START_MS)
  }

  protected override async beforeContainerCreated(): Promise<void> {
    // The log line comes only after the script, which comes after the start.
    this.waitStrategy = Wait.forSuccessfulCommand('true')
  }

  protected override async containerStarted(container: StartedTestContainer, inspect: InspectResult): Promise<void> {
    const address = `HOST://${addressOf(container)},INTERNAL://${inspect.hostname}:19092`
    const content = `#!/bin/bash\nexport KAFKA_ADVERTISED_LISTENERS=${address}\nexec /etc/kafka/docker/run\n`
    await container.copyContentToContainer([{ target: SCRIPT, mode: 0o755, content }])
    const client = await getContainerRuntimeClient()
    const ports = BoundPorts.fromInspectResult(client.info.containerRuntime.hostIps, inspect).filter(this.exposedPorts)
    const started = Wait.forLogMessage(/Kafka Server started/).withStartupTimeout(START_MS)
    await waitForContainer(client, client.container.getById(container.getId()), started, ports)
  }
}

const addressOf = (container: StartedTestContainer): string => `${container.getHost()}:${container.getMappedPort(PORT)}`

/** @throws what Docker says when it cannot run the image */
export async function startContainer(): Promise<{ brokers: string[]; stop(): Promise<void> }> {
  const container = await new KafkaContainer().start()
  return {
    brokers: [addressOf(container)],
    stop: async () => {
      await container.stop()
    },
  }
}
