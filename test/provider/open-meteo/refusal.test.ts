// Without it a refusal of the provider could be retried in vain, or never.

import t from 'tap'
import { refusalOf } from '../../../src/provider/open-meteo/refusal.ts'

const now = Date.parse('2026-11-21T17:58:30Z')
const reason = (text: string) => JSON.stringify({ error: true, reason: text })
const [nextMinute, nextHour, nextDay] = [
  '2026-11-21T17:59:02Z',
  '2026-11-21T18:00:02Z',
  '2026-11-22T00:00:02Z',
]

t.test('status and reason decide the error, whether a retry can help, and when to come back', async t => {
  const table: [number, string, string, boolean, string?][] = [
    [400, reason('Data corrupted at path'), 'provider_refused', false],
    [400, reason('Your API call requests too much data. Please'), 'provider_too_much', false],
    [400, reason('The supplied API key is invalid.'), 'provider_denied', false],
    [400, '<html>400 Bad Request</html>', 'provider_denied', false],
    [400, '', 'provider_denied', false],
    [401, reason('Unauthorized'), 'provider_denied', false],
    [403, '<html>', 'provider_denied', false],
    [404, reason('Not Found'), 'provider_denied', false],
    [413, '', 'provider_too_much', false],
    [414, '<html>', 'provider_too_much', false],
    [431, '', 'provider_too_much', false],
    [301, '', 'provider_denied', false],
    [499, '', 'provider_denied', false],
    [429, reason('Minutely API request limit exceeded. Please'), 'provider_limited', false, nextMinute],
    [429, reason('Hourly API request limit exceeded.'), 'provider_limited', false, nextHour],
    [429, reason('Daily API request limit exceeded.'), 'provider_limited', false, nextDay],
    [429, reason('Too many concurrent requests'), 'provider_busy', true],
    [429, 'no JSON', 'provider_limited', false, nextMinute],
    [500, reason('Something went wrong.'), 'provider_failing', true],
    [502, '<html>502 Bad Gateway</html>', 'provider_failing', true],
    [503, reason('The service is overloaded'), 'provider_overloaded', false],
    [504, '<html>', 'provider_failing', true],
  ]
  for (const [status, body, code, retryable, at] of table) {
    const error = refusalOf(status, body, now)
    const retryAt = at === undefined ? undefined : Date.parse(at)
    t.strictSame(
      [error.code, error.retryable, error.retryAt],
      [code, retryable, retryAt],
      `${status} ${body}`,
    )
    t.notMatch(error.message, /html/)
  }
})

t.test(
  'an hour or day is not used up in its first minute, so the provider is asked again after it',
  async t => {
    const at = (text: string, instant: string): string => {
      const { retryAt } = refusalOf(429, reason(text), Date.parse(instant))
      return retryAt === undefined ? 'never' : new Date(retryAt).toISOString()
    }
    const [hourly, daily] = ['Hourly API request limit exceeded.', 'Daily API request limit exceeded.']
    t.equal(at(daily, '2026-11-22T00:00:00.100Z'), '2026-11-22T00:01:02.000Z')
    t.equal(at(daily, '2026-11-22T00:01:00Z'), '2026-11-23T00:00:02.000Z')
    t.equal(at(daily, '2026-11-22T01:00:02Z'), '2026-11-23T00:00:02.000Z')
    t.equal(at(hourly, '2026-11-21T18:00:59.999Z'), '2026-11-21T18:01:02.000Z')
    t.equal(at(hourly, '2026-11-21T18:01:00Z'), '2026-11-21T19:00:02.000Z')
  },
)

t.test('a reason of any length and kind is one safe line', async t => {
  const controls = '\u001b[2J all\r\nis\u2028well\u202e \u009b'
  for (const [given, shown] of [
    ['x'.repeat(20_000), `${'x'.repeat(200)}…`],
    [controls, '\\u001b[2J all\\u000d\\u000ais\\u2028well\\u202e \\u009b'],
    [`${'x'.repeat(199)}😀`, `${'x'.repeat(199)}…`],
  ] as const)
    t.equal(refusalOf(500, reason(given), now).message, `the provider answered 500: ${shown}`)
  for (const body of ['{"reason":5}', '{"reason":{"a":1}}', 'null', '5', '"text"', '['.repeat(16_000)])
    t.equal(refusalOf(500, body, now).message, 'the provider answered 500', body.slice(0, 20))
})
