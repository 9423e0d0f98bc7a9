// A key that comes on many connections: it is hashed once, and refused on each of them as soon as it is revoked.

import t from 'tap'
import { createAuthenticate, emptyKeyMemo } from '../../src/keys/authentication.ts'
import type { KeyCopy } from '../../src/keys/key-directory.ts'
import { createKey } from '../../src/keys/key-form.ts'
import type { FoundKey } from '../../src/stores/store.ts'
import { manualClock } from '../support/manual-clock.ts'

const now = Date.parse('2026-11-21T06:00Z')

const foundKey = (id: string): FoundKey =>
  ({
    key: { id, subscriberId: 'sub_1', tier: 'free', limit: null, revokedAt: null, expiresAt: null },
    subscriber: { id: 'sub_1', revokedAt: null },
    validUntil: null,
  }) as unknown as FoundKey

t.test('a key is known on another connection, and revoked there too', async t => {
  const clock = manualClock(now)
  const presented = createKey()
  let copy: { -readonly [Name in keyof KeyCopy]: KeyCopy[Name] } | undefined = {
    found: foundKey('key_1'),
    freshUntil: now + 60_000,
  }
  let lookedUp = 0
  const authenticate = createAuthenticate(
    {
      copyOf: () => {
        lookedUp += 1
        return copy
      },
      find: () => 'unknown',
    },
    { free: 10 },
    clock,
  )
  for (let i = 0; i < 3; i++)
    t.match(authenticate(presented, emptyKeyMemo()), { client: { keyId: 'key_1', limit: 10 } })
  t.equal(lookedUp, 1, 'the other connections found it')

  // As the directory does when it reads that the key has changed.
  copy.freshUntil = 0
  copy = {
    found: { ...foundKey('key_1'), key: { ...foundKey('key_1').key, revokedAt: now } },
    freshUntil: now + 60_000,
  }
  t.match(authenticate(presented, emptyKeyMemo()), { refusal: 'key-revoked' })
  t.match(authenticate(presented, emptyKeyMemo()), { refusal: 'key-revoked' })
  t.equal(lookedUp, 3, 'what is refused is not remembered')

  copy = { found: foundKey('key_1'), freshUntil: now + 60_000 }
  t.match(authenticate(presented, emptyKeyMemo()), { client: { keyId: 'key_1' } })
  copy = undefined
  clock.set(now - 120_000)
  t.match(
    authenticate(presented, emptyKeyMemo()),
    { refusal: 'unknown' },
    'a clock that goes back keeps nothing fresh',
  )
})
