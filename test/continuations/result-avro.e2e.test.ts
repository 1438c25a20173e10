import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { hasPython } from '../../examples/support/python.ts'
import { openThreadlog } from '../../src/index.ts'
import { temporaryFolder } from '../log/support/sqlite-place.ts'
import { agentOf, calls, says, toolbox } from '../support/agents.ts'

// A producer in another language: nothing but its standard library, the schema's id, and the field order in schemas/result-1.avsc.
const PRODUCER = `
import json, sqlite3, struct, sys, time

file, ids = sys.argv[1:]
schema_id = [pin["id"] for pin in json.load(open(ids))["schemas"] if pin["type"] == "result/1"][-1]

def long(n):
    n = (n << 1) ^ (n >> 63)
    out = bytearray()
    while n > 0x7f:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])

def data(value):
    value = value.encode() if isinstance(value, str) else value
    return long(len(value)) + value

def optional(value, write=data):
    return long(0) if value is None else long(1) + write(value)

def failure(value):
    code, retryable = value
    return data(code) + bytes([retryable])

def result(provider, external_id=None, continuation_id=None, result_id=None, value=None, failed=None):
    text = None if value is None else json.dumps(value, ensure_ascii=False, indent=1)
    return b"".join([
        b"\\0", struct.pack(">I", schema_id), optional(None), data(provider), optional(external_id), optional(continuation_id),
        optional(result_id), optional(None), optional(None), optional(text), optional(failed, failure)])

log = sqlite3.connect(file, timeout=10, isolation_level=None)

def send(value):
    log.execute("INSERT INTO threadlog_results(value) VALUES (?)", (value,))
    (offset,) = log.execute("SELECT max(offset) FROM threadlog_results").fetchone()
    for _ in range(1000):
        row = log.execute("SELECT verdict FROM threadlog_receipts WHERE source_offset = ?", (offset,)).fetchone()
        if row:
            print(row[0], flush=True)
            return
        time.sleep(0.01)
    print("no receipt", flush=True)

for _ in range(1000):
    waiting = log.execute("SELECT external_id, continuation_id FROM threadlog_requests ORDER BY offset").fetchall()
    if len(waiting) == 2:
        break
    time.sleep(0.01)
(first, _), (_, second) = waiting
answer = {"ok": True}
send(result("outside", external_id=first, value={"ok": "yes"}))
send(result("outside", external_id=first, value=answer)[:-3])
send(b"\\0" + struct.pack(">I", schema_id + 100000) + b"x")
send(result("outside", external_id=first, result_id="r-1", value=answer))
send(json.dumps({"provider": "outside", "external_id": first, "result": answer}))
send(result("outside", external_id=first, result_id="r-1", value=answer))
send(json.dumps({"provider": "outside", "continuation_id": second, "failure": {"code": "no_funds"}}))
send(result("outside", continuation_id=second, failed=("no_funds", False)))
send(result("outside", continuation_id=second, failed=("no_funds", True)))
send(result("outside", continuation_id=second, value=answer))
`

test('a Python process writes results in Avro by hand, and each gets the verdict its JSON form would', async ({ skip }) => {
  skip(!hasPython(), 'needs python3 with SQLite 3.38 or newer')
  const folder = temporaryFolder()
  const file = `${folder.path}/log.db`
  const { far } = toolbox().tools
  const script = (prompt: readonly { role: string }[]) =>
    prompt.some(({ role }) => role === 'tool') ? says('done') : calls(['c1', 'far', { n: 1 }], ['c2', 'far', { n: 2 }])
  const threads = await openThreadlog({ log: `sqlite:${file}`, agents: [agentOf(script, [far])] })
  await threads.serve()
  const run = await threads.start({ agent: 'agent', thread: 'py_1', input: 'go' })
  const ids = fileURLToPath(new URL('../../schemas/ids.json', import.meta.url))
  const { stdout } = await promisify(execFile)('python3', ['-c', PRODUCER, file, ids], { timeout: 50_000 })
  expect(stdout.trim().split('\n')).toEqual([
    ...['invalid', 'unreadable', 'unreadable', 'accepted', 'duplicate', 'accepted'],
    ...['accepted', 'duplicate', 'conflict', 'conflict'],
  ])
  expect(await run.result()).toMatchObject({ status: 'completed', output: 'done' })
  const { message_history } = (await threads.thread('py_1').state()).toJSON() as { message_history: { parts: object[] }[] }
  const returned = message_history.flatMap((message) => message.parts).filter((part) => 'outcome' in part)
  expect(returned).toMatchObject([
    { tool_call_id: 'c1', content: { ok: true } },
    { tool_call_id: 'c2', content: { error: { code: 'no_funds', retryable: false } } },
  ])
  await threads.close()
  folder.remove()
})
