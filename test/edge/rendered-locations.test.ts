// What rendered lists and places take in memory: their encodings count too, and what was asked for last stays.

import t from 'tap'
import type { Catalogue } from '../../src/catalogue/catalogue.ts'
import { createRenderedLocations } from '../../src/edge/rendered-locations.ts'

const catalogue = {} as Catalogue
const body = { text: 'x'.repeat(1_000) }

t.test('encodings count as a body’s size, and move the least recently used one out', async t => {
  let renders = 0
  const rendered = createRenderedLocations(6_000)
  const ask = (name: string) =>
    rendered(name, catalogue, () => {
      renders += 1
      return { body }
    })
  const first = ask('first')
  const second = ask('second')
  t.equal(ask('first'), first)
  t.equal(renders, 2, 'both are kept')
  second.onEncoded?.(Buffer.alloc(2_500))
  t.equal(ask('second'), second)
  t.equal(ask('first'), first, 'there is room for both and the encoding')
  t.equal(renders, 2)
  second.onEncoded?.(Buffer.alloc(500))
  t.equal(ask('second'), second)
  t.not(ask('first'), first, 'and not for one more')
})

t.test('another catalogue begins anew', async t => {
  const rendered = createRenderedLocations(6_000)
  const one = rendered('list', catalogue, () => ({ body }))
  t.not(
    rendered('list', {} as Catalogue, () => ({ body })),
    one,
  )
  one.onEncoded?.(Buffer.alloc(10))
})
