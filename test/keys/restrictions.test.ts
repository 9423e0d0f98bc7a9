// Without it a restricted key could be used from another origin, address or endpoint.

import t from 'tap'
import { restrictedBy } from '../../src/keys/restrictions.ts'
import type { Restrictions } from '../../src/stores/store.ts'

type Asked = { origin?: string; address?: string; endpoint?: 'weather' | 'forecast' | 'key' | 'other' }
const refusalOf = (given: Partial<Restrictions>, { origin, address, endpoint = 'weather' }: Asked) =>
  restrictedBy({ origins: null, addresses: null, endpoints: null, ...given }).refusal(
    { origin, endpoint },
    () => address,
  )

const origins = ['https://a.example', 'https://*.b.example', 'capacitor://localhost', 'http://localhost:5173']
const addresses = ['203.0.113.0/24', '198.51.100.7', '2001:db8:1::/48']
const endpoints = ['weather', 'coords']
const allowed: [given: Partial<Restrictions>, asked: Asked][] = [
  [{}, {}],
  ...[...origins.filter(origin => !origin.includes('*')), 'https://x.b.example'].map(
    (origin): [Partial<Restrictions>, Asked] => [{ origins }, { origin }],
  ),
  ...[
    ...['203.0.113.0', '203.0.113.255', '198.51.100.7', '::ffff:203.0.113.9', '::ffff:c633:6407'],
    ...['2001:db8:1::9', '2001:0DB8:0001:ffff::1'],
  ].map((address): [Partial<Restrictions>, Asked] => [{ addresses }, { address }]),
  [{ addresses: ['::ffff:198.51.100.7'] }, { address: '::ffff:198.51.100.7' }],
  [{ endpoints }, {}],
  [{ endpoints }, { endpoint: 'key' }],
  [{ endpoints }, { endpoint: 'other' }],
  [
    { origins, addresses, endpoints },
    { origin: 'https://a.example', address: '198.51.100.7' },
  ],
]
for (const [given, asked] of allowed)
  t.test(`allowed: ${JSON.stringify(asked)} of ${Object.keys(given)}`, async t => {
    t.equal(refusalOf(given, asked), undefined)
  })

const refused: [refusal: string, given: Partial<Restrictions>, asked: Asked][] = [
  ...[
    ...['https://b.example', 'https://x.y.b.example', 'https://.b.example', 'http://a.example', 'null', ''],
    ...['https://a.example.evil.example', 'https://a.example:8443', 'HTTPS://A.EXAMPLE', '*'],
    ...['https://*.b.example', 'https://evil.example#.b.example', 'https://x.b.example.evil'],
  ].map((origin): [string, Partial<Restrictions>, Asked] => ['origin-not-allowed', { origins }, { origin }]),
  ['origin-not-allowed', { origins }, {}],
  ['origin-not-allowed', { origins, addresses, endpoints }, { endpoint: 'forecast' }],
  ...['203.0.114.0', '198.51.100.8', '::1', '2001:db8:2::1', undefined].map(
    (address): [string, Partial<Restrictions>, Asked] => [
      'address-not-allowed',
      { addresses },
      address === undefined ? {} : { address },
    ],
  ),
  ['address-not-allowed', { addresses, endpoints }, { address: '::1', endpoint: 'key' }],
  ['address-not-allowed', { addresses: ['nonsense'] }, { address: '203.0.113.9' }],
  ['endpoint-not-allowed', { endpoints }, { endpoint: 'forecast' }],
  ['endpoint-not-allowed', { endpoints: ['of tomorrow'] }, {}],
]
for (const [refusal, given, asked] of refused)
  t.test(`${refusal}: ${JSON.stringify(asked)}`, async t => {
    t.equal(refusalOf(given, asked), refusal)
  })

t.test('the address is resolved for a key that is bound to addresses alone', async t => {
  const bound = restrictedBy({ origins, addresses: null, endpoints })
  const never = () => {
    throw new Error('the address was resolved')
  }
  t.equal(bound.refusal({ origin: 'https://a.example', endpoint: 'weather' }, never), undefined)
})
