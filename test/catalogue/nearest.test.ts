// Without this, a point could be given a place that is not its nearest.

import t from 'tap'
import { createCatalogue } from '../../src/catalogue/catalogue.ts'
import { createNearest, kilometresBetween } from '../../src/catalogue/nearest.ts'
import { readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { wholeCatalogue } from '../support/usual-catalogue.ts'

t.test('distances are those of great circles', async t => {
  const dhaka = { latitude: 23.7115, longitude: 90.4111 }
  const chattogram = { latitude: 22.3384, longitude: 91.8317 }
  t.equal(kilometresBetween(dhaka, dhaka), 0)
  // By the haversine formula, on the mean radius.
  t.equal(kilometresBetween(dhaka, chattogram).toFixed(1), '210.8')
  t.equal(
    kilometresBetween({ latitude: 0, longitude: 0 }, { latitude: 0, longitude: 1 }).toFixed(3),
    '111.195',
  )
  t.ok(kilometresBetween({ latitude: 0, longitude: 179.9 }, { latitude: 0, longitude: -179.9 }) < 23)
})

t.test(
  'the nearest union is the one that a look at all of them finds, inside and outside of the country',
  async t => {
    const catalogue = createCatalogue(await readSnapshot(wholeCatalogue))
    const unions = catalogue.all().filter(({ type }) => type === 'union')
    let state = 1
    const random = (): number => {
      state = (state * 48_271) % 2_147_483_647
      return state / 2_147_483_647
    }
    const points = Array.from({ length: 60 }, () => ({
      latitude: 20 + 7 * random(),
      longitude: 87.5 + 5.5 * random(),
    }))
    const corners = [20, 27].flatMap(latitude => [87.5, 93].map(longitude => ({ latitude, longitude })))
    for (const point of [...points, ...corners, ...unions.slice(0, 4)]) {
      const found = catalogue.nearest('union', point)
      const least = Math.min(...unions.map(union => kilometresBetween(union, point)))
      t.equal(found && kilometresBetween(found, point), least)
    }
  },
)

t.test('of places at one point it is always the same, and of none there is none', async t => {
  const catalogue = createCatalogue(await readSnapshot(wholeCatalogue))
  const places = catalogue.list({ type: 'district', limit: 9, offset: 0 }).results
  const at = { latitude: 23, longitude: 90 }
  const same = places.map(place => ({ ...place, ...at }))
  const least = same.map(({ id }) => id).sort()[0]
  for (let i = 0; i < same.length; i++) {
    const turned = [...same.slice(i), ...same.slice(0, i)]
    t.equal(createNearest(turned)({ latitude: 24, longitude: 91 })?.id, least)
  }
  t.equal(createNearest([])(at), undefined)
})
