// Without it a change of one restriction could lift another, or a wrong origin, address or rate could be stored.

import t from 'tap'
import { type GivenTerms, givenTermsIn, type TermTexts, termsIn } from '../../src/keys/key-terms.ts'

const restrictions = { origins: ['https://a.example'], addresses: null, endpoints: ['weather'] }
const rates = { perSecond: 5, burst: 20, perMinute: null }
// As many as may be, in as many characters of JSON as may be.
const longest = Array.from(
  { length: 50 },
  (_, i) => `https://x${10 + i}${'a'.repeat(i < 49 ? 57 : 60)}.example`,
)

t.test('what is given is set, what is absent stays, and what is null is lifted', async t => {
  const former = { restrictions, rates }
  const cases: [given: GivenTerms, after: object, before?: typeof former][] = [
    [{}, {}],
    [{}, {}, former],
    [{ restrictions: { endpoints: ['weather'] } }, { restrictions: { ...restrictions, origins: null } }],
    [
      { restrictions: { addresses: ['192.0.2.1'] } },
      { restrictions: { ...restrictions, addresses: ['192.0.2.1'] } },
      former,
    ],
    [{ restrictions: { origins: null } }, { restrictions: { ...restrictions, origins: null } }, former],
    [{ restrictions: { origins: null, endpoints: null } }, { restrictions: null }, former],
    [{ rates: { perMinute: 100 } }, { rates: { ...rates, perMinute: 100 } }, former],
    [{ rates: { burst: null } }, { rates: { ...rates, burst: null } }, former],
    [{ rates: { perSecond: null, burst: null } }, { rates: null }, former],
    [{ rates: { perSecond: null } }, { rates: null }, former],
    [{ rates: { perMinute: 7 } }, { rates: { perSecond: null, burst: null, perMinute: 7 } }],
    [{ rates: { burst: 300 } }, { rates: { ...rates, burst: 300 } }, former],
    [
      { restrictions: { origins: longest } },
      { restrictions: { ...restrictions, origins: longest, endpoints: null } },
    ],
  ]
  for (const [given, after, before] of cases)
    t.strictSame(termsIn(given, before), after, JSON.stringify(given))
})

t.test('texts are lists parted by commas or blanks, whole numbers, or none', async t => {
  const cases: [texts: TermTexts, given: GivenTerms][] = [
    [{}, {}],
    [{ origins: '', perSecond: undefined }, {}],
    [
      { origins: ' https://a.example,https://*.b.example , capacitor://localhost http://localhost:5173' },
      {
        restrictions: {
          origins: [
            'https://a.example',
            'https://*.b.example',
            'capacitor://localhost',
            'http://localhost:5173',
          ],
        },
      },
    ],
    [
      { addresses: '192.0.2.1 2001:db8::/32,192.0.2.1', endpoints: 'none' },
      { restrictions: { addresses: ['192.0.2.1', '2001:db8::/32'], endpoints: null } },
    ],
    [
      { perSecond: '5', burst: 'none', perMinute: '1000000' },
      { rates: { perSecond: 5, burst: null, perMinute: 1_000_000 } },
    ],
  ]
  for (const [texts, given] of cases) t.strictSame(givenTermsIn(texts), given, JSON.stringify(texts))
})

const [origin, address, endpoint] = [
  /^the origin must be an origin as browsers send it, such as https:\S+ or \S+, got /,
  /^the address must be an IP address or a CIDR range such as \S+, got /,
  /^the endpoint must be one of weather, .*coords.*, got /,
]
const manyOrigins = Array.from(
  { length: 50 },
  (_, i) => `https://${'a'.repeat(60)}.${'b'.repeat(60)}.x${i}.org`,
)
const wrong: [texts: TermTexts, sentence: RegExp, end?: RegExp][] = [
  [{ origins: 'a.example' }, origin, /got "a\.example"$/],
  ...['*', 'https://*.com'].map((origins): [TermTexts, RegExp] => [{ origins }, origin]),
  ...['https://a.example/x', 'https://A.example'].map((origins): [TermTexts, RegExp, RegExp] => [
    { origins },
    ...([origin, /"; write https:\/\/a\.example, as browsers send it$/] as const),
  ]),
  [
    { origins: 'https://\u0986\u09ac\u09b9.example' },
    origin,
    /; write https:\/\/xn--\S+\.example, as browsers/,
  ],
  [{ origins: ',' }, /^origins must have 1 to 50 entries, got 0$/],
  [{ addresses: '10.0.0.0/33' }, address, /got "10\.0\.0\.0\/33"$/],
  [
    { addresses: '10.0.0.5/8' },
    address,
    /"; write 10\.0\.0\.0\/8 for the range, or 10\.0\.0\.5 for the one address$/,
  ],
  [{ addresses: '2001:db8::1/32' }, address, /; write 2001:db8::\/32 for the range, or 2001:db8::1 for/],
  [{ addresses: '10.0.0' }, address],
  [
    { addresses: Array.from({ length: 51 }, (_, i) => `10.0.0.${i}`).join() },
    /^addresses must have .*, got 51$/,
  ],
  ...['weathr', 'key'].map((endpoints): [TermTexts, RegExp] => [{ endpoints }, endpoint]),
  [{ perSecond: '0' }, /^per-second must be none or an integer from 1 to 1000000, got "0"$/],
  [{ perSecond: '5', burst: '1.5' }, /^burst must be none or an integer .*, got "1\.5"$/],
  [{ perMinute: '1000001' }, /^per-minute must be .*, got "1000001"$/],
  [{ perSecond: '5', burst: '301' }, /^burst must be at most 60 times per-second, which is 5, got 301$/],
  [{ burst: '5' }, /^burst requires per-second$/],
  [
    { origins: manyOrigins.join() },
    /^the restrictions must have at most 4000 characters as JSON, got [67]\d+$/,
  ],
]
t.test('wrong terms are refused in a sentence', async t => {
  for (const [texts, sentence, end = sentence] of wrong) {
    const set = () => termsIn(givenTermsIn(texts))
    for (const message of [sentence, end])
      t.throws(set, { name: 'InputError', message }, JSON.stringify(texts).slice(0, 50))
  }
})
