// Without it encodings of lists and places could outgrow their bound of memory.

import { randomBytes } from 'node:crypto'
import t from 'tap'
import { createRenderedLocations } from '../../src/api/location-endpoints.ts'
import type { Catalogue } from '../../src/catalogue/catalogue.ts'

const catalogue = {} as Catalogue
// Of little use to compressors, so that an encoding is nearly as long.
const body = { text: randomBytes(750).toString('base64') }

t.test('encodings count as a body’s size, and move the least recently used one out', async t => {
  let renders = 0
  const { rendered } = createRenderedLocations(4_500)
  const read = (name: string) =>
    rendered(name, catalogue, () => {
      renders += 1
      return { body }
    })
  const first = read('first')
  const second = read('second')
  t.equal(read('first'), first)
  t.equal(renders, 2, 'both are kept')
  const zipped = await second.encode({ preferred: 'gzip', gzip: true })
  t.hasStrict(zipped, { coding: 'gzip' })
  t.equal(await second.encode({ preferred: 'gzip', gzip: true }), zipped, 'it is made once')
  t.equal(read('second'), second)
  t.equal(read('first'), first, 'there is room for both and the encoding')
  t.equal(renders, 2)
  await second.encode({ preferred: 'br', gzip: true })
  t.equal(read('second'), second)
  t.not(read('first'), first, 'and not for one more')
})

t.test('another catalogue starts with an empty cache', async t => {
  const { rendered } = createRenderedLocations(6_000)
  const one = rendered('list', catalogue, () => ({ body }))
  t.not(
    rendered('list', {} as Catalogue, () => ({ body })),
    one,
  )
  await one.encode({ preferred: 'br', gzip: true })
})
