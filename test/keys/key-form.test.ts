// The format of API keys: created, checked by checksum, and hashed.

import t from 'tap'
import { createKey, hashOf, keyPrefix, parseKey } from '../../src/keys/key-form.ts'

t.test('a key has the prefix, 32 base62 characters by chance and 6 of checksum', t => {
  const key = createKey()
  t.match(key, /^svc_live_[0-9A-Za-z]{38}$/)
  t.equal(parseKey(key), key)
  t.ok(32 * Math.log2(62) >= 190, 'at least 190 bits')
  t.end()
})

t.test('keys differ, and every base62 character turns up', t => {
  const keys = Array.from({ length: 300 }, createKey)
  t.equal(new Set(keys).size, 300)
  t.equal(new Set(keys.flatMap(key => [...key.slice(keyPrefix.length, -6)])).size, 62)
  t.end()
})

t.test('any single changed character is noticed', t => {
  const key = createKey()
  for (let i = keyPrefix.length; i < key.length; i++) {
    const other = key[i] === 'a' ? 'b' : 'a'
    t.equal(parseKey(key.slice(0, i) + other + key.slice(i + 1)), undefined)
  }
  t.end()
})

t.test('neighbours swapped, a character lost or added, and other forms are refused', t => {
  const key = createKey()
  const swapped = Array.from({ length: 31 }, (_, i) => {
    const at = keyPrefix.length + i
    return `${key.slice(0, at)}${key[at + 1]}${key[at]}${key.slice(at + 2)}`
  }).filter(other => other !== key)
  t.ok(swapped.length > 1, 'equal neighbours are few')
  for (const given of [
    ...swapped,
    key.slice(0, -1),
    `${key}a`,
    `${key} `,
    key.toLowerCase(),
    key.replace('live', 'test'),
    '',
    keyPrefix,
  ])
    t.equal(parseKey(given), undefined, given)
  t.end()
})

t.test('the hash is SHA-256 and gives nothing of the key away', t => {
  const key = createKey()
  t.match(hashOf(key), /^[0-9a-f]{64}$/)
  t.not(hashOf(key), hashOf(createKey()))
  t.end()
})
