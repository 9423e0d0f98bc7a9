// Restrictions and rates as they are given: what is taken, what is refused with which sentence, and what a change leaves.

import t from 'tap'
import { type GivenTerms, givenTermsIn, type TermTexts, termsIn } from '../../src/keys/key-terms.ts'

const restrictions = { origins: ['https://a.example'], addresses: null, endpoints: ['weather'] }
const rates = { perSecond: 5, burst: 20, perMinute: null }

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

const wrong: [texts: TermTexts, sentence: RegExp][] = [
  [{ origins: 'a.example' }, /^the origin is "a\.example"; allowed: one as browsers send it, such as https:/],
  [{ origins: '*' }, /^the origin is "\*"; allowed/],
  [{ origins: 'https://*.com' }, /^the origin is "https:\/\/\*\.com"; allowed/],
  [
    { origins: 'https://a.example/x' },
    /^the origin is "https:\/\/a\.example\/x"; browsers send https:\/\/a\.example: write/,
  ],
  [
    { origins: 'https://A.example' },
    /^the origin is "https:\/\/A\.example"; browsers send https:\/\/a\.example: write/,
  ],
  [
    { origins: 'https://\u0986\u09ac\u09b9\u09be\u0993\u09df\u09be.example' },
    /^the origin is "https:\/\/\u0986.*\.example"; browsers send https:\/\/xn--\S+\.example: write that$/,
  ],
  [{ origins: ',' }, /^origins has 0 entries; allowed: 1 to 50$/],
  [{ addresses: '10.0.0.0/33' }, /^the address is "10\.0\.0\.0\/33"; allowed: an IP address or a CIDR range/],
  [
    { addresses: '10.0.0.5/8' },
    /^the address is "10\.0\.0\.5\/8"; that range is 10\.0\.0\.0\/8: write that, or 10\.0\.0\.5 for the one address$/,
  ],
  [{ addresses: '2001:db8::1/32' }, /that range is 2001:db8::\/32: write that, or 2001:db8::1 for/],
  [{ addresses: '10.0.0' }, /^the address is "10\.0\.0"; allowed/],
  [{ addresses: Array.from({ length: 51 }, (_, i) => `10.0.0.${i}`).join() }, /^addresses has 51 entries/],
  [{ endpoints: 'weathr' }, /^the endpoint is "weathr"; allowed: weather, .*coords/],
  [{ endpoints: 'key' }, /^the endpoint is "key"; allowed/],
  [{ perSecond: '0' }, /^per-second is "0"; allowed: a whole number from 1 to 1000000, or none$/],
  [{ perSecond: '5', burst: '1.5' }, /^burst is "1\.5"; allowed/],
  [{ perMinute: '1000001' }, /^per-minute is "1000001"; allowed/],
  [{ perSecond: '5', burst: '301' }, /^burst is 301 and per-second is 5; allowed: at most 60 times as much$/],
  [{ burst: '5' }, /^burst is 5 and per-second is none; allowed: burst with per-second$/],
  [
    {
      origins: Array.from(
        { length: 50 },
        (_, i) => `https://${'a'.repeat(60)}.${'b'.repeat(60)}.x${i}.example`,
      ).join(),
    },
    /^the restrictions have 7\d+ characters as JSON; allowed: at most 4000$/,
  ],
]
for (const [texts, message] of wrong)
  t.test(`refused: ${JSON.stringify(texts).slice(0, 50)}`, async t => {
    t.throws(() => termsIn(givenTermsIn(texts)), { name: 'InputError', message })
  })
