// Without it a client could invent its address, or text that is no address could reach the log.

import fc from 'fast-check'
import t from 'tap'
import {
  type AddressForm,
  createClientAddress,
  createIsTrusted,
  networkOf,
} from '../../src/api/connection/client-address.ts'

const trusted = ['10.0.0.0/8', '192.0.2.7', 'fd00::/8', 'fe80::2']

/** The client of a request from `peer` with this `x-forwarded-for`. */
const clientOf = (peer: string | undefined, forwardedFor?: string, form: AddressForm = 'full') => {
  const { ofPeer, loggedOf } = createClientAddress(createIsTrusted(trusted), form)
  return loggedOf(ofPeer(peer), forwardedFor)
}

const table: [string, string | undefined, string | undefined, string | undefined][] = [
  ['no proxy', '203.0.113.9', undefined, '203.0.113.9'],
  ['a stranger says something of a client', '203.0.113.9', '198.51.100.1', '203.0.113.9'],
  ['a connection that is gone', undefined, '198.51.100.1', undefined],
  ['a proxy', '10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['a proxy, as IPv4 in IPv6', '::ffff:10.1.2.3', '198.51.100.1', '198.51.100.1'],
  ['a proxy that says nothing', '10.1.2.3', undefined, '10.1.2.3'],
  ['a client that makes up an address', '10.1.2.3', '127.0.0.1, 198.51.100.1', '198.51.100.1'],
  ['two proxies', '10.1.2.3', '1.1.1.1, 198.51.100.1, 192.0.2.7', '198.51.100.1'],
  ['proxies alone', '10.1.2.3', '10.9.9.9, 192.0.2.7', '10.9.9.9'],
  ['an address with a port', '10.1.2.3', '198.51.100.1:4711', '198.51.100.1'],
  ['IPv6', '10.1.2.3', '2001:DB8:0:0::1', '2001:db8::1'],
  ['IPv6 with a port', 'fd00::1', '[2001:db8::1]:4711', '2001:db8::1'],
  ['what is no address', '10.1.2.3', 'unknown', '10.1.2.3'],
  ['what is no address before a proxy', '10.1.2.3', '198.51.100.1, svc_live_x, 192.0.2.7', '192.0.2.7'],
  ['an address with a zone', '10.1.2.3', 'fe80::1%svc_live_x', '10.1.2.3'],
  ['a peer of this link', 'fe80::1%br-lan', undefined, 'fe80::1'],
  ['a proxy of this link', 'fe80::2%eth0.100', '198.51.100.1', '198.51.100.1'],
  ['an empty header', '10.1.2.3', '', '10.1.2.3'],
  [
    ...['the sixteen last hops are read', '10.1.2.3'],
    ...[`1.1.1.1,10.0.0.9,${'10.0.0.1,'.repeat(14)}10.0.0.2`, '10.0.0.9'],
  ] as [string, string, string, string],
  ['more hops than any chain has', '10.1.2.3', `1.1.1.1,${'10.0.0.1,'.repeat(40)}10.0.0.2`, '10.0.0.1'],
]

t.test('the last address that is none of a trusted proxy', async t => {
  for (const [what, peer, forwardedFor, expected] of table)
    t.equal(clientOf(peer, forwardedFor), expected, what)
  const { ofPeer } = createClientAddress(createIsTrusted(trusted), 'full')
  t.match(ofPeer(undefined), { isProxy: false, address: undefined }, 'a peer that is gone')
  t.equal(networkOf('fe80::1%br-lan'), networkOf('fe80::3'), 'one link is one network')
  t.equal(createIsTrusted(trusted)('fe80::2%docker_gwbridge'), true)
})

t.test('a prefix is the network, and none is none', async t => {
  for (const [address, prefix] of [
    ['203.0.113.9', '203.0.113.0/24'],
    ['::ffff:203.0.113.9', '203.0.113.0/24'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8::/48'],
    ['::1', '::/48'],
    ['2001::5:6:7:8', '2001::/48'],
    ['1:2:3:4:5:6:7::', '1:2:3::/48'],
  ] as const) {
    t.equal(clientOf(address, undefined, 'prefix'), prefix, address)
    t.equal(clientOf('10.1.2.3', address, 'prefix'), prefix, `${address} behind a proxy`)
    t.equal(clientOf(address, undefined, 'none'), undefined)
    t.equal(clientOf('10.1.2.3', address, 'none'), undefined)
  }
  fc.assert(
    fc.property(fc.ipV6(), address => {
      const prefix = clientOf(address, undefined, 'prefix') ?? ''
      if (/^::ffff:/i.test(address)) return true
      const [network = ''] = prefix.split('/')
      const check = createIsTrusted([prefix])
      return prefix.endsWith(network.includes(':') ? '/48' : '/24') && check(address)
    }),
  )
})

t.test('whatever the header holds, what comes out is an address', async () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string(), fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string())).map(String)),
      text => /^[0-9a-f.:]+$/.test(clientOf('10.1.2.3', text) ?? ''),
    ),
  )
})

t.test('a client is its IPv4 address, or the /64 of its IPv6 address', async t => {
  t.equal(networkOf('203.0.113.9'), '203.0.113.9')
  t.equal(networkOf('::ffff:203.0.113.9'), '203.0.113.9')
  t.equal(networkOf('2001:db8:1:2::1'), networkOf('2001:db8:1:2:ffff:1:2:3'))
  for (const [one, other] of [
    ['2001:db8:1:2::1', '2001:db8:1:3::1'],
    ['2001:db8:1:2::1', '2002:db8:1:2::1'],
    ['1:23::', 'd:5::'],
  ] as const)
    t.not(networkOf(one), networkOf(other))
})
