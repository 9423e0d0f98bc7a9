// Without it a request could change when it is written to a traffic file and read again.

import { deepStrictEqual, equal, ok } from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'
import { lineOf, outcomes, requestOf } from '../../../../tools/load/traffic/traffic-request.ts'
import { anyText } from '../../../support/any-text.ts'
import { rawControlIn } from '../../../support/raw-controls.ts'

const text = (most: number) => anyText({ minLength: 1, maxLength: most })
const ascii = (pattern: RegExp) => fc.stringMatching(pattern)
const amount = fc.oneof(fc.nat(86_399_999), fc.double({ min: 0, max: 1e7, noNaN: true }).map(Math.abs))

const requests = fc.record(
  {
    at: fc.integer({ min: Date.UTC(2000), max: Date.UTC(2099, 11, 31) }),
    method: ascii(/^[A-Z]{1,20}$/),
    path: ascii(/^\/[\x21-\x7e]{0,80}$/),
    key: text(40),
    accepts: ascii(/^[\x20-\x7e]{0,40}$/),
    conditional: fc.boolean(),
    status: fc.integer({ min: 100, max: 599 }),
    outcome: fc.constantFrom(...outcomes),
    tier: text(20),
    cell: text(20),
    bytes: amount,
    ms: amount,
  },
  { requiredKeys: ['at', 'method', 'path'] },
)

t.test('every request comes back of its line, and the line is the same each time', async () => {
  fc.assert(
    fc.property(requests, request => {
      const line = lineOf(request as TrafficRequest)
      // Assertions of tap cost more than what they look at.
      deepStrictEqual(requestOf(line), JSON.parse(JSON.stringify(request)))
      equal(lineOf(requestOf(line)), line)
      equal(rawControlIn(line), undefined)
    }),
    { numRuns: 300 },
  )
})

t.test('whatever stands in a line, it is a request or an error of one sentence', async () => {
  const { InputError } = await import('../../../../src/common/errors.ts')
  const right = lineOf({ at: Date.UTC(2026), method: 'GET', path: '/' })
  const broken = fc.oneof(
    anyText(),
    fc.json(),
    fc.tuple(fc.nat(right.length), text(3)).map(([at, more]) => right.slice(0, at) + more + right.slice(at)),
  )
  fc.assert(
    fc.property(broken, line => {
      try {
        requestOf(line)
      } catch (thrown) {
        if (!(thrown instanceof InputError)) throw thrown
        ok(!/[\n\r]/.test(thrown.message))
      }
    }),
    { numRuns: 500 },
  )
})

t.test('a wrong field is named, with what is expected', async t => {
  const refused: [Record<string, unknown>, RegExp][] = [
    [{ at: 'yesterday' }, /^at is "yesterday", expected an instant/],
    [{ method: 'get' }, /^method is .*expected a method such as "GET"/],
    [{ path: 'x y' }, /^path is /],
    [{ status: 99 }, /^status is 99, expected a status from 100 to 599/],
    [{ outcome: 'HIT' }, /^outcome is .*"hit"/],
    [{ ms: -1 }, /^ms is -1,/],
    [{ accepts: 'gzip\r\nhost: x' }, /^accepts is /],
  ]
  for (const [fields, sentence] of refused) {
    const line = JSON.stringify({ at: '2026-11-21T06:00:00Z', method: 'GET', path: '/', ...fields })
    t.throws(() => requestOf(line), sentence)
  }
})
