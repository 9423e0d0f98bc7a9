// The pass-through: which parts of a request may go to the provider, and what it weighs there.

import fc from 'fast-check'
import t from 'tap'
import { forwardedRequest } from '../../src/ops/forwarded-request.ts'
import { Refusal } from '../../src/ops/refusal.ts'
import { passthrough } from '../../src/provider/open-meteo/passthrough.ts'
import { anyText } from '../support/any-text.ts'

const forwarded = (target: string) => forwardedRequest(target, passthrough)

const names = (count: number) => Array.from({ length: count }, (_, i) => `v${i}`).join(',')
const weightOf = (query: string) => Number(forwarded(`/v1/forecast?${query}`).weight.toFixed(3))

t.test('the weight counts points, variables of all sections, models and days', async t => {
  const weights: [query: string, weight: number][] = [
    ['', 1],
    ['latitude=1&longitude=2', 1],
    ['latitude=1&longitude=2&apikey=x', 1],
    ['latitude=1,2,3&longitude=1,2,3', 3],
    ['latitude=1&latitude=2,3&longitude=1,2,3', 3],
    ['latitude=1&longitude=1,2,3', 3],
    ['latitude=1&longitude=1&elevation=1,2,3,4', 4],
    ['latitude=1,,&longitude=1', 3],
    ['latitude=1&longitude=1&timezone=a,b,c', 1],
    [`latitude=1&current=${names(15)}&hourly=${names(15)}&daily=${names(4)}`, 3.4],
    [`latitude=1&hourly=${names(15)}&hourly=${names(15)}`, 3],
    [`latitude=1&minutely_15=${names(20)}`, 2],
    [`latitude=1&hourly=${names(10)}&models=a,b,c`, 3],
    [`latitude=1,2&hourly=${names(10)}&models=a&models=b`, 4],
    [`latitude=1&hourly=${names(34)}&forecast_days=16`, 3.886],
    [`latitude=1&hourly=${names(10)}&past_days=92&forecast_days=16`, 7.714],
    [`latitude=1&hourly=${names(10)}&past_days=21`, 2],
    [`latitude=1&hourly=${names(20)}&forecast_days=0`, 2],
    [`latitude=1&hourly=${names(10)}&forecast_days=1&forecast_hours=672`, 2],
    [`latitude=1&hourly=${names(10)}&forecast_days=1&past_hours=648`, 2],
    [`latitude=1&minutely_15=${names(10)}&forecast_days=1&forecast_minutely_15=2688`, 2],
    [`latitude=1&minutely_15=${names(10)}&forecast_days=1&past_minutely_15=2592`, 2],
  ]
  for (const [query, weight] of weights) t.equal(weightOf(query), weight, query)
  t.equal(forwarded('/data/ecmwf_ifs/static/meta.json').weight, 0)
})

t.test(
  'of the known paths the page of a model run alone weighs nothing, and no other is let through',
  async t => {
    const example = (path: string) => path.replace(/<[a-z]+>/, 'ecmwf_ifs')
    t.strictSame(
      passthrough.paths.map(path => [path, forwarded(example(path)).weight]),
      [
        ['/v1/forecast', 1],
        ['/data/<model>/static/meta.json', 0],
      ],
    )
    for (const path of ['/v1/archive', '/v1/ensemble', '/data/ecmwf_ifs/static/other.json', '/'])
      t.throws(() => forwarded(`${path}?latitude=1&longitude=2`), /is not let through; allowed: /, path)
    // A path that somebody adds is weighed before anybody says so.
    const parameters = new Map([['hourly', names(20)]])
    t.equal(passthrough.weightOf('/v1/added-later', parameters), 2)
  },
)

t.test(
  'whatever comes in, what goes out is one of two paths, in a form that is judged alike again',
  async t => {
    let passed = 0
    const part = fc.oneof(
      fc.constantFrom(
        'v1',
        'forecast',
        'data',
        'ecmwf_ifs',
        'static',
        'meta.json',
        '..',
        '.',
        '',
        'v1/forecast',
      ),
      anyText({ maxLength: 6 }),
    )
    const encoded = (text: string, how: number) =>
      how === 0
        ? text
        : how === 1
          ? encodeURIComponent(text.toWellFormed())
          : [...Buffer.from(text)].map(byte => `%${byte.toString(16).padStart(2, '0')}`).join('')
    const segment = fc.tuple(part, fc.nat(2)).map(([text, how]) => encoded(text, how))
    const name = fc.constantFrom(
      'latitude',
      'longitude',
      'hourly',
      'models',
      'apikey',
      'forecast_days',
      'start_date',
    )
    const pair = fc
      .tuple(name, fc.oneof(fc.string(), fc.nat(20).map(String)))
      .map(([key, value]) => `${key}=${value}`)
    const path = fc.oneof(
      fc.constant('/v1/forecast'),
      fc.array(segment, { maxLength: 5 }).map(segments => `/${segments.join('/')}`),
    )
    const target = fc
      .tuple(path, fc.array(pair, { maxLength: 5 }))
      .map(([path, pairs]) => `${path}?${pairs.join('&')}`)
    // Each of these is let through, whatever the random ones are.
    const examples: [string][] = [
      ['/v1/forecast?latitude=1&longitude=2&hourly=a,b'],
      ['/v1/%66orecast?latitude=1&latitude=2&longitude=%33'],
      ['/v1/forecast?hourly=%E0%A6%85+%20&models='],
      ['/data/ecmwf_ifs/static/meta.json?'],
      ['/%64ata/ecmwf_ifs/static/meta%2Ejson?'],
    ]
    fc.assert(
      fc.property(target, target => {
        let first: ReturnType<typeof forwarded>
        try {
          first = forwarded(target)
        } catch (error) {
          if (!(error instanceof Refusal)) throw error
          // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not be there
          return error.message.length < 500 && !/[\x00-\x1f\x7f]/.test(error.message)
        }
        passed += 1
        const [path = '', query = ''] = first.target.split('?')
        const again = forwarded(first.target)
        return (
          /^\/(v1\/forecast|data\/[a-z0-9_]+\/static\/meta\.json)$/.test(path) &&
          /^[\w.~*+%&=,-]*$/.test(query) &&
          !/apikey|start_date=/.test(query) &&
          again.target === first.target &&
          again.weight === first.weight &&
          (path.startsWith('/data') || first.weight >= 1)
        )
      }),
      { numRuns: 5_000, examples },
    )
    t.ok(passed >= examples.length, `${passed} were let through`)
  },
)

t.test('what is quoted of a request is short, printable and without the password of a URL', async t => {
  t.throws(() => forwarded('/v1/a%1b[31m%e2%80%a8'), { message: /"\/v1\/a\\u001b\[31m\\u2028"/ })
  t.throws(() => forwarded(`/${'x'.repeat(61)}`), { message: new RegExp(`"/${'x'.repeat(59)}…"`) })
  t.throws(() => forwarded(`/v1/forecast?hourly=a&redis://me:secret@host=1`), { message: /^(?!.*secret)/s })
})
