// A hostile provider against the gateway's own client, in a process with little memory: it survives one attack after the
// other, finishes in time, keeps its event loop free, and reports the fault in a sentence.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { type Attack, forever, inSingleBytes, startHostileProvider } from '../support/hostile-provider.ts'
import type { LoadRequest, Outcome } from '../support/load-cells.ts'
import { startProviderHere } from '../support/provider-here.ts'
import { until } from '../support/until.ts'

// Node itself does not start with half of it.
const maxMiB = 768
const points = 100
const totalTimeoutMs = 5_000
// Usually some 20, on a busy machine.
const maxStillMs = 400
const maxGrownMiB = 96

const zipped = (...parts: (string | Buffer)[]): Attack => {
  const body = gzipSync(Buffer.concat(parts.map(part => Buffer.from(part))))
  return ({ response }) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(body)
}
const many = (text: string, times: number): Buffer => Buffer.alloc(text.length * times, text)
/** An element with as many members as its bytes have room for. */
const full = (memberOf: (i: number) => string): string => {
  let members = memberOf(0)
  for (let i = 1; members.length < 140_000; i++) members += `,${memberOf(i)}`
  return `{${members}}`
}
/** Begins a body in gzip that has no end yet. */
const gzipHead = (response: ServerResponse): ServerResponse => {
  response.writeHead(200, { 'content-encoding': 'gzip' })
  response.write(Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]))
  return response
}
/** Stored (uncompressed) blocks of gzip, none of them marked as the last. */
const zippedZeros = Buffer.concat([Buffer.from([0, 0, 128, 255, 127]), Buffer.alloc(1 << 15)])
const zippedNothing = Buffer.alloc(50_000, Buffer.from([0, 0, 0, 255, 255]))

// The attack, the reason it is refused with, how often, and the sentence.
const attacks: Record<string, [Attack, string, number, RegExp]> = {
  'six million elements in 12 kB': [
    zipped('[0', many(',0', 6 << 20), ']'),
    'too_many_elements',
    1,
    /^provider_garbled: the provider's body has more than 100 elements$/,
  ],
  'four million lists in each other': [
    zipped(many('[', 4 << 20), many(']', 4 << 20)),
    'too_deep',
    1,
    /^provider_garbled: an element of the provider's body has more than 8 levels$/,
  ],
  'objects without number, no two alike': [
    zipped(
      '[',
      Array(points)
        .fill(full(i => `"o${i}":{"k${i.toString(36)}":1}`))
        .join(','),
      ']',
    ),
    'too_many_lists',
    1,
    /^provider_garbled: an element of the provider's body has more than 256 lists and objects$/,
  ],
  'members without number in every element': [
    zipped(
      '[',
      Array(points)
        .fill(full(i => `"${i.toString(36)}":1`))
        .join(','),
      ']',
    ),
    'wrong_shape',
    points,
    /^provider_garbled: the provider's body does not match the request: latitude: expected a number, given nothing$/,
  ],
  'a text of 60 MiB': [
    zipped('[{"latitude":"', many('a', 60 << 20), '"}]'),
    'too_large',
    1,
    /^provider_garbled: an element of the provider's body is longer than 149696 bytes$/,
  ],
  'blanks without end': [
    ({ response }) => forever(response.writeHead(200), many(' ', 1 << 16)),
    'too_large',
    1,
    /^provider_garbled: the provider's body is longer than 14969600 bytes$/,
  ],
  'zeros without end, zipped': [
    ({ response }) => forever(gzipHead(response), zippedZeros),
    'too_large',
    1,
    /^provider_garbled: an element of the provider's body is longer than 149696 bytes$/,
  ],
  'zipped blocks of nothing without end': [
    ({ response }) => forever(gzipHead(response), zippedNothing),
    'too_large',
    1,
    /^provider_garbled: the provider's body is longer than 14969600 bytes$/,
  ],
  'single bytes': [
    async ({ response, socket, honest }) => {
      response.writeHead(200, { 'transfer-encoding': 'chunked' }).flushHeaders()
      socket.write(inSingleBytes(Buffer.from(await honest())))
    },
    'too_many_chunks',
    1,
    /^provider_garbled: the provider's body comes in 4097 chunks for \d+ bytes, expected 16 bytes in each on average$/,
  ],
}

// Refused by their status alone, whatever the body is.
const errors: Record<string, [Attack, RegExp]> = {
  'an error with a reason of 60 MiB, zipped': [
    ({ response }) =>
      response
        .writeHead(500, { 'content-encoding': 'gzip' })
        .end(gzipSync(Buffer.concat([Buffer.from('{"reason":"'), many('a', 60 << 20), Buffer.from('"}')]))),
    /^provider_failing: the provider answered 500$/,
  ],
  'a limit with a body without end': [
    ({ response }) => forever(response.writeHead(429), many('[', 1 << 16)),
    /^provider_limited: the provider answered 429$/,
  ],
}

const honest = await startProviderHere(t)
const attackNames = [...Object.keys(attacks), ...Object.keys(errors)].map(slug)
const responses = {
  ...Object.fromEntries(Object.entries(attacks).map(([name, [attack]]) => [slug(name), attack])),
  ...Object.fromEntries(Object.entries(errors).map(([name, [attack]]) => [slug(name), attack])),
}
const provider = await startHostileProvider(t, honest.url, responses, { isSteady: true })

function slug(name: string): string {
  return name.replace(/\W+/g, '-')
}

const script = join(import.meta.dirname, '../support/load-cells.ts')
const names = ['honest', ...attackNames]
const loadRequest: LoadRequest = {
  goodUrl: provider.url('honest'),
  urls: names.map(name => provider.url(name)),
  points,
  totalTimeoutMs,
}
const child = spawn(
  'prlimit',
  [`--data=${maxMiB << 20}`, process.execPath, script, JSON.stringify(loadRequest)],
  { stdio: ['ignore', 'pipe', 'pipe'] },
)
let isOver = false
const over = once(child, 'close').then(() => {
  isOver = true
})
t.teardown(async () => {
  child.kill('SIGKILL')
  await over
})
let errorText = ''
child.stderr.setEncoding('utf8').on('data', text => {
  errorText += text
})
const outcomes: Outcome[] = []
createInterface({ input: child.stdout }).on('line', line => outcomes.push(JSON.parse(line)))

/** What came of an attack, after those before it. */
const outcomeOf = async (name: string): Promise<Outcome> => {
  const at = names.indexOf(name)
  await until(`the process has met ${name}`, () => outcomes.length > at || isOver, 60_000)
  const outcome = outcomes[at]
  if (outcome) return outcome
  const why = errorText.split('\n').find(line => /FATAL|bad_alloc|Error/.test(line))
  throw new Error(`the process ended by ${child.signalCode ?? child.exitCode}: ${why}`)
}

const unharmed = (t: { ok(fine: boolean, what: string): void }, outcome: Outcome): void => {
  t.ok(outcome.stoodStillMs <= maxStillMs, `stood still for ${outcome.stoodStillMs} ms`)
  t.ok(outcome.grewMiB <= maxGrownMiB, `grew by ${outcome.grewMiB} MiB`)
  t.ok(outcome.ms <= totalTimeoutMs + 2_000, `done after ${outcome.ms} ms`)
}

t.test('an honest body loads within the same memory', async t => {
  const outcome = await outcomeOf('honest')
  t.match(outcome, { loaded: points, failed: {}, refused: {} })
  unharmed(t, outcome)
})

for (const [name, [, why, times, sentence]] of Object.entries(attacks))
  t.test(`${name}: refused in a sentence, and counted`, async t => {
    const outcome = await outcomeOf(slug(name))
    t.equal(outcome.loaded, 0)
    const sentences = Object.keys(outcome.failed)
    t.equal(sentences.length, 1)
    t.match(sentences[0], sentence)
    t.strictSame(outcome.refused, { [why]: times })
    unharmed(t, outcome)
  })

for (const [name, [, sentence]] of Object.entries(errors))
  t.test(`${name}: its status is enough`, async t => {
    const outcome = await outcomeOf(slug(name))
    t.match(Object.keys(outcome.failed)[0], sentence)
    unharmed(t, outcome)
  })
