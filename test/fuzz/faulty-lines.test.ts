// The fuzzer's oracle for files whose faulty lines are known: it agrees with every command, in every format that has lines, and
// finds a command that says another number or none.

import { once } from 'node:events'
import { createServer } from 'node:http'
import t from 'tap'
import { createRandom } from '../../fuzz/random.ts'
import { countRules, openTraffic, traffic } from '../../fuzz/targets/traffic.ts'
import { runShared } from '../support/process.ts'

const server = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1')
t.teardown(() => server.close())
await once(server, 'listening')
const { port } = server.address() as { port: number }

type Case = ReturnType<typeof traffic.generate>

/** One counted case of each command and format, with some faulty lines. */
const cases = new Map<string, Case>()
const random = createRandom(1, 'faulty lines')
for (let tries = 0; tries < 20_000 && cases.size < 20; tries++) {
  const drawn = traffic.generate(random, tries)
  const shape = traffic.shapeOf(drawn)
  if (drawn.isCounted && drawn.text.length < 8_000 && !cases.has(shape)) cases.set(shape, drawn)
}

t.test('every command says how many lines are faulty', async t => {
  t.equal(cases.size, 20)
  const system = { gateway: () => ({ api: { host: '127.0.0.1', port } }) } as unknown as Parameters<
    typeof traffic.open
  >[0]
  const watched = await traffic.open(system)
  t.teardown(() => watched.close())
  const session = await openTraffic(system, async args => ({
    ...(await runShared(args)),
    signal: null,
    isLate: false,
  }))
  t.teardown(() => session.close())
  // Each command once in a process of its own, as the fuzzer runs it; the other cases of it only differ in their file.
  const seen = new Set<string>()
  for (const [shape, each] of cases) {
    const found = await (seen.has(each.command) ? session : watched).run(each)
    seen.add(each.command)
    t.strictSame(found, [], shape)
  }
  t.equal(seen.size, 5)
})

t.test('another number is found, and so is a command that fails', async t => {
  const ended = { code: 0, signal: null, isLate: false, stdout: 'faulty  2 lines, left out\n', stderr: '' }
  const given = { command: 'stats', format: 'ndjson', text: '{"at":\nnull\n' } as const
  t.strictSame(countRules(given, ended, 'file'), [])
  t.match(countRules({ ...given, text: 'null\n' }, ended, 'file'), [{ detail: '2 reported, 1 in the file' }])
  t.match(countRules(given, { ...ended, stdout: '' }, 'file'), [{ detail: '0 reported, 2 in the file' }])
  t.match(countRules(given, { ...ended, code: 1 }, 'file'), [{ rule: 'faulty lines do not end a command' }])
})
