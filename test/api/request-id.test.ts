// The id of a request: the consumer's own if it is valid. An id that contains an API key is not.

import t from 'tap'
import { requestIdOf } from '../../src/api/request.ts'
import { createKey } from '../../src/keys/key-form.ts'
import { spellings } from '../support/key-spellings.ts'

t.test('an id that holds a key, or the beginning of one, is replaced', async t => {
  const key = createKey()
  for (const [spelling, spell] of Object.entries(spellings))
    for (const id of [spell(key), `trace-${spell(key)}`, `${spell(key)}.7`, `a:${spell(key).slice(0, 30)}`])
      if (id.length <= 128)
        t.match(requestIdOf(id), /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/, `${spelling}: ${id}`)
})

t.test('any other sane id stays', async t => {
  for (const id of [
    'trace-01/a=b',
    '7f3c2a1e-0b5d-4c1a-9b1e-3f2d1c0b9a87',
    'Root=1-67891233-abcdef012345678912345678',
    'svc_live_',
    'svc-live-1',
    'dGhpcyBpcyBubyBrZXk=',
    'x'.repeat(128),
  ])
    t.equal(requestIdOf(id), id)
})
