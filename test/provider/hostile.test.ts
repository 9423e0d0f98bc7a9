// Without it one response of a hostile provider could end the gateway for want of memory.

import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { type Attack, forever, startHostileProvider } from '../support/hostile-provider.ts'
import { startProgram, withoutPrlimit } from '../support/process.ts'
import { startProviderHere } from '../support/provider.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { until } from '../support/until.ts'
import type { LoadRequest, Outcome } from './load-cells.ts'

skipFileIf(t, withoutPrlimit)

// Node itself does not start with half of it.
const maxMiB = 768
const points = 100
const maxGrownMiB = 96

const zipped = (status: number, ...parts: (string | Buffer)[]): Attack => {
  const body = gzipSync(Buffer.concat(parts.map(part => Buffer.from(part))))
  return ({ response }) => response.writeHead(status, { 'content-encoding': 'gzip' }).end(body)
}
const many = (text: string, times: number): Buffer => Buffer.alloc(text.length * times, text)
/** Elements with as many members as their bytes have room for. */
const fullElements = (memberOf: (i: number) => string): string => {
  let members = memberOf(0)
  for (let i = 1; members.length < 140_000; i++) members += `,${memberOf(i)}`
  return JSON.stringify(Array(points).fill(0)).replaceAll('0', `{${members}}`)
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

const bodyTooLarge = /^provider_garbled: the provider's body is longer than 14969600 bytes$/
const elementTooLarge = /^provider_garbled: an element of the provider's body is longer than 149696 bytes$/
// How much of a body is decoded before it is refused.
const [nothing, firstSlice] = [0, 16_384]
const [elementAndSlice, wholeBody] = [149_696 + firstSlice, 14_969_600]
// The attack, the sentence, the most bytes that are decoded, and the reason that is counted; none where the status is enough,
// whatever the body is.
const attacks: Record<string, [Attack, RegExp, number, string?, number?]> = {
  'six-million-elements-in-12-kB': [
    zipped(200, '[0', many(',0', 6 << 20), ']'),
    /^provider_garbled: the provider's body has more than 100 elements$/,
    firstSlice,
    'too_many_elements',
  ],
  'four-million-lists-in-each-other': [
    zipped(200, many('[', 4 << 20), many(']', 4 << 20)),
    /^provider_garbled: an element of the provider's body has more than 8 levels$/,
    firstSlice,
    'too_deep',
  ],
  'objects-without-number-no-two-alike': [
    zipped(
      200,
      fullElements(i => `"o${i}":{"k${i.toString(36)}":1}`),
    ),
    /^provider_garbled: an element of the provider's body has more than 256 lists and objects$/,
    firstSlice,
    'too_many_lists',
  ],
  'members-without-number-in-every-element': [
    zipped(
      200,
      fullElements(i => `"${i.toString(36)}":1`),
    ),
    /^provider_garbled: the provider's body does not match the request: latitude: expected a number, got nothing$/,
    wholeBody,
    'wrong_shape',
    points,
  ],
  'a-text-of-60-MiB': [
    zipped(200, '[{"latitude":"', many('a', 60 << 20), '"}]'),
    elementTooLarge,
    elementAndSlice,
    'too_large',
  ],
  'blanks-without-end': [
    ({ response }) => forever(response.writeHead(200), many(' ', 1 << 16)),
    bodyTooLarge,
    wholeBody,
    'too_large',
  ],
  'zeros-without-end-zipped': [
    ({ response }) => forever(gzipHead(response), zippedZeros),
    elementTooLarge,
    elementAndSlice,
    'too_large',
  ],
  'zipped-blocks-of-nothing-without-end': [
    ({ response }) => forever(gzipHead(response), zippedNothing),
    bodyTooLarge,
    nothing,
    'too_large',
  ],
  'an-error-with-a-reason-of-60-MiB-zipped': [
    zipped(500, '{"reason":"', many('a', 60 << 20), '"}'),
    /^provider_failing: the provider answered 500$/,
    nothing,
  ],
}

const honest = await startProviderHere(t)
const responses = Object.fromEntries(Object.entries(attacks).map(([name, [attack]]) => [name, attack]))
const provider = await startHostileProvider(t, honest.url, responses, { isSteady: true })
const names = ['honest', ...Object.keys(attacks)]
const loadRequest: LoadRequest = {
  goodUrl: provider.url('honest'),
  urls: names.map(name => provider.url(name)),
  points,
}
const script = join(import.meta.dirname, 'load-cells.ts')
const line = ['prlimit', `--data=${maxMiB << 20}`, process.execPath, script, JSON.stringify(loadRequest)]
const { child, said, closed, lines } = await startProgram(t, line, [])
let isOver = false
void closed.then(() => {
  isOver = true
})

for (const [at, name] of names.entries())
  t.test(`${name}: loaded, or refused in a sentence, early and within memory`, async t => {
    await until(`the process has met ${name}`, () => lines.length > at || isOver)
    const outcome: Outcome | undefined = lines[at] && JSON.parse(lines[at])
    const why = said.stderr.split('\n').find(line => /FATAL|bad_alloc|Error/.test(line))
    if (!outcome) throw new Error(`the process ended by ${child.signalCode ?? child.exitCode}: ${why}`)
    const [, sentence, mostRead = wholeBody, reason, times = 1] = attacks[name] ?? []
    t.equal(outcome.loaded, name === 'honest' ? points : 0)
    t.match(Object.keys(outcome.failed), sentence ? [sentence] : [])
    t.equal(Object.keys(outcome.failed).length, sentence ? 1 : 0)
    if (reason || !sentence) t.strictSame(outcome.refused, reason ? { [reason]: times } : {})
    t.ok(outcome.readBytes <= mostRead, `read ${outcome.readBytes} bytes`)
    t.ok(outcome.grewMiB <= maxGrownMiB, `grew by ${outcome.grewMiB} MiB`)
  })
