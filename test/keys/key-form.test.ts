// Without it a mistyped key would cost a look-up, and a test key could pass for a live one.

import t from 'tap'
import { createKey, hashOf, keyPrefix, parseKey, testKeyPrefix } from '../../src/keys/key-form.ts'

t.test('a key has the prefix, 32 base62 characters by chance and 6 of checksum', async t => {
  const key = createKey()
  t.match(key, /^svc_live_[0-9A-Za-z]{38}$/)
  t.equal(parseKey(key), key)
})

t.test('a test key differs by its prefix alone, and the one is never the other', async t => {
  const key = createKey(testKeyPrefix)
  t.match(key, /^svc_test_[0-9A-Za-z]{38}$/)
  t.equal(parseKey(key), key)
  t.equal(parseKey(key.replace('test', 'live')), undefined)
  t.equal(parseKey(key.replace('test', 'next')), undefined)
})

t.test(
  'keys that were made by earlier versions stay valid: the checksum is the CRC-32 in base62',
  async t => {
    for (const key of [
      'svc_live_000000000000000000000000000000003uclD9',
      'svc_test_Abohawa9Abohawa9Abohawa9Abohawa94JrYVc',
    ])
      t.equal(parseKey(key), key)
  },
)

t.test('keys differ, and every base62 character turns up', async t => {
  const keys = Array.from({ length: 300 }, createKey)
  t.equal(new Set(keys).size, 300)
  t.equal(new Set(keys.flatMap(key => [...key.slice(keyPrefix.length, -6)])).size, 62)
})

t.test('any single changed character is noticed', async t => {
  const key = createKey()
  for (let i = keyPrefix.length; i < key.length; i++) {
    const other = key[i] === 'a' ? 'b' : 'a'
    t.equal(parseKey(key.slice(0, i) + other + key.slice(i + 1)), undefined)
  }
})

t.test('neighbours swapped, a character lost or added, and other forms are refused', async t => {
  const key = createKey()
  const swapped = Array.from({ length: 31 }, (_, i) => {
    const at = keyPrefix.length + i
    return `${key.slice(0, at)}${key[at + 1]}${key[at]}${key.slice(at + 2)}`
  }).filter(other => other !== key)
  t.ok(swapped.length > 1, 'equal neighbours are few')
  const others = [key.slice(0, -1), `${key}a`, `${key} `, key.toLowerCase(), key.replace('live', 'test')]
  for (const given of [...swapped, ...others, '', keyPrefix]) t.equal(parseKey(given), undefined, given)
})

t.test('the hash is SHA-256 in hexadecimal', async t => {
  t.equal(hashOf('abc'), 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
})
