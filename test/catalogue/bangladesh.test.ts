// Without this, the shipped places could be incomplete, or differ from what a build writes.

import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import { createCatalogue, type ListQuery } from '../../src/catalogue/catalogue.ts'
import { check } from '../../src/catalogue/check.ts'
import { type LocationType, locationTypes, snapshotNaming } from '../../src/catalogue/location-schema.ts'
import { fold, foldLoosely, withoutLevel } from '../../src/catalogue/search.ts'
import { formatSnapshot } from '../../src/catalogue/snapshot.ts'
import { inspectSnapshot, isShipped, readSnapshot, shipped } from '../../src/catalogue/snapshot-reader.ts'

const path = fileURLToPath(new URL('../../locations.json', import.meta.url))
const snapshot = await readSnapshot(path)
const catalogue = createCatalogue(snapshot)

const { counts } = snapshot.provenance

t.test('there are all divisions and districts of the country, its upazilas and most unions', async t => {
  t.match(counts, { division: 8, district: 64 })
  t.ok(counts.upazila >= 495 && counts.upazila < 600, `${counts.upazila} upazilas`)
  t.ok(counts.total > 5_000, `${counts.total} places`)
  t.equal(catalogue.size, snapshot.locations.filter(({ published }) => published).length)
})

t.test('the sources are named with their licence, as some licences require', async t => {
  const licences = new Map(snapshot.provenance.sources.map(({ name, licence }) => [name, licence]))
  const licenceOf = (part: string) => licences.entries().find(([name]) => name.includes(part))?.[1]
  t.equal(snapshot.provenance.title, 'Bangladesh')
  for (const [source, licence] of [
    ['bangladesh-geocode', 'MIT'],
    ['CRAN package bangladesh', 'MIT'],
    ['GeoNames', 'CC BY 4.0'],
    ["Who's On First", 'whosonfirst.org/docs/licenses'],
    ['COD-AB', 'CC BY-IGO'],
  ] as const)
    t.match(licenceOf(source), licence)
})

t.test('the file is byte for byte what a build writes, one place a line', async t => {
  const text = readFileSync(path, 'utf8')
  t.ok(formatSnapshot(snapshot) === text)
  t.equal(text.split('\n').filter(line => line.startsWith('    {"id":')).length, counts.total)
})

t.test('a start takes them as checked: they keep every rule within their own bounds', async t => {
  const { locations } = JSON.parse(readFileSync(path, 'utf8')) as { locations: Record<string, unknown>[] }
  const rows = locations.map((fields, at) => ({ row: `locations[${at}]`, naming: snapshotNaming, fields }))
  const { provenance } = snapshot
  t.strictSame(check(rows, shipped.bounds), [])
  t.equal(shipped.sha256, provenance.sha256, 'state this checksum in src/catalogue/snapshot-reader.ts')
  t.ok(isShipped(provenance.sha256, provenance.bounds), 'or every start checks them again')
})

t.test('within other bounds, or with one letter changed, they are checked', async t => {
  const text = readFileSync(path, 'utf8')
  const narrower = text.replace('"north": 27', '"north": 24')
  t.match(inspectSnapshot(narrower).faults[0]?.message, /must be a number from 20 to 24/)
  const changed = text.replace('"name_en":"Barishal"', '"name_en":" Barishal"')
  t.not(changed, text)
  t.match(inspectSnapshot(changed).faults[0]?.message, /without blanks at either end/)
})

const found = (q: string, type: LocationType = 'district') => {
  const { results, matchedAliases, approximate } = catalogue.list({ type, q, limit: 9, offset: 0 })
  return results.map(place => [place.name_en, matchedAliases.get(place), approximate])
}

const searches: [q: string, place: string, alias?: string | undefined, approximate?: boolean][] = [
  ['Comilla', 'Cumilla', 'Comilla'],
  ['dacca', 'Dhaka', 'Dacca'],
  ['Chittagong', 'Chattogram', 'Chittagong'],
  ['Barisal', 'Barishal', 'Barisal'],
  ['Jessore', 'Jashore', 'Jessore'],
  ['Bogra', 'Bogura', 'Bogra'],
  ['coxs bazar', "Cox's Bazar"],
  ['Cox\u2019s Bazar', "Cox's Bazar"],
  ['COX\u02bcS-BAZAR', "Cox's Bazar"],
  ['coxsbazar', "Cox's Bazar"],
  ['\u0995\u0995\u09cd\u09b8 \u09ac\u09be\u099c\u09be\u09b0', "Cox's Bazar"],
  ['Narayangonz', 'Narayanganj', undefined, true],
  ['Narayannganj', 'Narayanganj', undefined, true],
  ['Pharidpur', 'Faridpur', undefined, true],
  ['\u09a8\u09b0\u09b6\u09bf\u0982\u09a6\u09bf', 'Narsingdi', undefined, true],
  // Three letters with their vowel signs are enough for a misspelt name.
  ['\u09ab\u09c7\u09a3\u09bf', 'Feni', undefined, true],
]

t.test('a place is found by former names, without blanks and signs, and misspelt', async t => {
  for (const [q, place, alias, approximate = false] of searches)
    t.strictSame(found(q), [[place, alias, approximate]], q)
  t.strictSame(found('Chittagong', 'division'), [['Chattogram', 'Chittagong', false]])
  t.strictSame(found('sher e bangla', 'upazila')[0], ['Sher-e-Bangla Nagar', undefined, false])
})

t.test('a search that means nothing finds nothing', async t => {
  for (const type of locationTypes)
    for (const q of ['zzzz', "'", '-', '. .', '\u0964', 'a'.repeat(100), 'llll', '7', '!!', '\u09cd', 'zv'])
      t.strictSame(found(q, type), [], `${q} among those of type ${type}`)
  t.strictSame(found('nowhere at all'), [])
  t.equal(found('').length, 9, 'an empty one is no filter')
  t.equal(found(' \u200b').length, 9, 'nor is one that looks empty')
  t.strictSame(found('Narayannnganj'), [], 'three equal letters are no doubled letter')
})

t.test('names are found as they are often written, and with the word for their level', async t => {
  for (const [type, id, q] of [
    ['district', '3067', '\u09a8\u09be\u09b0\u09be\u09df\u09a3\u0997\u09a8\u09cd\u099c'],
    ['district', '5577', '\u09aa\u09a8\u09cd\u099a\u0997\u09dc'],
    ['district', '2015', '\u099a\u099f\u09cd\u09b0\u0997\u09cd\u09b0\u09be\u09ae'],
    [
      'district',
      '2012',
      '\u09ac\u09cd\u09b0\u09be\u0995\u09cd\u09b7\u09a3\u09ac\u09be\u09dc\u09bf\u09df\u09be',
    ],
    ['district', '3026', '\u09a2\u09be\u0995\u09be \u099c\u09c7\u09b2\u09be'],
    ['district', '3026', 'Dhaka District'],
    ['district', '3026', 'Dhaka zilla'],
    ['upazila', '302672', '\u09b8\u09be\u09ad\u09be\u09b0 \u0989\u09aa\u099c\u09c7\u09b2\u09be'],
    ['upazila', '302672', 'Savar Upazila'],
    ['division', '30', '\u09a2\u09be\u0995\u09be \u09ac\u09bf\u09ad\u09be\u0997'],
    ['union', '30267250', 'Kaundia Union Parishad'],
    ['district', '3026', '\u202a\uff24\uff48\uff41\uff4b\uff41\u202c\u200e'],
  ] as const)
    t.ok(
      catalogue.list({ type, q, limit: 5, offset: 0 }).results.some(place => place.id === id),
      q,
    )
  for (const q of ['Upazila', 'x upazila', 'union'])
    t.strictSame(catalogue.list({ type: 'district', q, limit: 5, offset: 0 }).results, [], q)
})

t.test('a union that moved is found by its former code', async t => {
  const successor = catalogue.successorOf('union', '10040939')
  t.hasStrict(successor, { location: { id: '10049039', parentId: '100490' }, since: '2012-04-25' })
  const moved = snapshot.locations.filter(({ formerIds }) => formerIds.length > 0)
  t.ok(moved.length >= 27, `${moved.length} places`)
  for (const { type, formerIds } of moved)
    for (const { id } of formerIds) t.equal(catalogue.find(type, id), undefined)
})

t.test('the index finds what a scan of every name finds, in order, on every page', async t => {
  const place = fc.constantFrom(...catalogue.all())
  const anyId = place.map(({ id }): string => id)
  const misspelt = (name: string) => name.replaceAll('j', 'z').replaceAll('l', 'll').replaceAll('b', 'v')
  const maybe = <Value>(arbitrary: fc.Arbitrary<Value>) => fc.option(arbitrary, { nil: undefined })
  const search = place.chain(({ type, name_en, name_bn, aliases, parentId }) => {
    const part = fc
      .tuple(fc.constantFrom(name_en, name_bn, ...aliases), fc.nat(20), fc.integer({ min: 1, max: 9 }))
      .map(([name, from, length]) => name.slice(from % name.length).slice(0, length))
    const whole = fc.constantFrom(misspelt(name_en), `${name_en} ${type}`, ...aliases)
    return fc.record({
      type: fc.oneof({ weight: 9, arbitrary: fc.constant(type) }, fc.constantFrom(...locationTypes)),
      q: maybe(fc.oneof(part, part, part, part, whole, whole, fc.tuple(part, part).map(String), fc.string())),
      parentId: maybe(fc.oneof(fc.constant(parentId ?? '0'), anyId)),
      limit: fc.integer({ min: 1, max: 100 }),
      offset: fc.oneof(fc.constant(0), fc.nat(300)),
    })
  })
  // Every search looks at the same names.
  const remembering = (foldName: typeof fold): typeof fold => {
    const known = new Map<string, string>()
    return name => known.getOrInsertComputed(name, foldName)
  }
  const [folded, foldedLoosely] = [remembering(fold), remembering(foldLoosely)]
  const inOrder = catalogue.all().toSorted((a, b) => b.population - a.population || (a.id < b.id ? -1 : 1))
  const shown = ({ type, q = '', parentId, limit, offset }: ListQuery) => {
    const all = inOrder.filter(each => each.type === type && (parentId ?? each.parentId) === each.parentId)
    const holding = (foldName: typeof fold, wanted = foldName(q)) => {
      const has = (name: string) => foldName(name).includes(wanted)
      const matches = all.flatMap(place => {
        const alias = [place.name_en, place.name_bn].some(has) ? '' : place.aliases.find(has)
        return alias === undefined ? [] : [{ place, alias }]
      })
      const page = matches.slice(offset, offset + limit)
      return {
        results: page.map(({ place }) => place),
        total: matches.length,
        matchedAliases: new Map(page.flatMap(({ place, alias }) => (alias === '' ? [] : [[place, alias]]))),
      }
    }
    const nothing = { results: [], total: 0, matchedAliases: new Map(), approximate: false }
    const lettersOf = (text: string) => [...text.matchAll(/\p{Alphabetic}/gu)].length
    if (q.replace(/[\p{Cf}\s]/gu, '') !== '' && lettersOf(fold(q)) === 0) return nothing
    const exact = { ...holding(folded), approximate: false }
    const wanted = foldLoosely(q)
    const tried = [wanted, withoutLevel(wanted)].filter(each => exact.total === 0 && lettersOf(each) >= 3)
    const near = tried.map(each => holding(foldedLoosely, each)).find(({ total }) => total > 0)
    return near ? { ...near, approximate: true } : exact
  }
  const seen = { several: 0, byAlias: 0, approximate: 0 }
  const same = fc.property(search, query => {
    const page = catalogue.list(query)
    if (query.q && page.total > 1) seen.several += 1
    if (page.matchedAliases.size > 0) seen.byAlias += 1
    if (page.approximate) seen.approximate += 1
    return isDeepStrictEqual(page, shown(query))
  })
  // Each kind of result occurs in every run, whatever the random searches find.
  const page = { parentId: undefined, limit: 20, offset: 0 }
  const examples: [ListQuery][] = [
    [{ ...page, type: 'union', q: 'pur' }],
    [{ ...page, type: 'union', q: 'pur', offset: 20 }],
    [{ ...page, type: 'district', q: 'Chittagong' }],
    [{ ...page, type: 'district', q: 'Narayannganj' }],
  ]
  t.doesNotThrow(() => fc.assert(same, { numRuns: 300, examples }))
  t.ok(seen.several >= 2, `${seen.several} searches found more than one place`)
  t.ok(seen.byAlias >= 1, `${seen.byAlias} searches found a place by an alias alone`)
  t.ok(seen.approximate >= 1, `${seen.approximate} searches found places by the looser fold alone`)
})
