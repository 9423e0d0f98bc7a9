// Without this, a damaged or hand-edited snapshot could be served.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { edits } from '../../fuzz/targets/traffic-texts.ts'
import { faultLine } from '../../src/catalogue/check.ts'
import { formatSnapshot } from '../../src/catalogue/snapshot.ts'
import { inspectSnapshot, readSnapshot } from '../../src/catalogue/snapshot-reader.ts'
import { InputError } from '../../src/common/errors.ts'
import { checkFile } from '../../tools/catalogue/build.ts'
import { bounds, buildSample, facts } from './sample-places.ts'

const sample = async (test: Test) => {
  const { path } = await buildSample(test.testdir())
  return { path, text: readFileSync(path, 'utf8') }
}

type Json = { provenance: Record<string, unknown>; locations: Record<string, unknown>[] }

/** The faults of the sample after a change of its JSON, as lines. */
const faultsAfter = (text: string, change: (file: Json) => void): string[] => {
  const file = JSON.parse(text) as Json
  change(file)
  return inspectSnapshot(JSON.stringify(file)).faults.map(faultLine)
}

t.test('places are one per line, by id, frozen; reading them gives the same text', async t => {
  const { path, text } = await sample(t)
  const ids = text.split('\n').flatMap(line => line.match(/^ {4}\{"id":"(\d+)",.*\},?$/)?.[1] ?? [])
  t.strictSame(ids, ['10', '1004', '100409', '10040913', '10040915', '10040923', '20'])
  const snapshot = await readSnapshot(path)
  t.equal(formatSnapshot(snapshot), text)
  const { provenance, locations } = snapshot
  t.match(provenance, {
    ...{ schema: 1, title: 'Sample', built: '2026-11-21', sources: facts.sources },
    counts: { division: 2, district: 1, upazila: 1, union: 3, total: 7 },
    sha256: /^[0-9a-f]{64}$/,
  })
  t.match(locations[1], { id: '1004', parentId: '10', bbs_code: 1004, published: true, website: /^https:/ })
  t.ok(Object.isFrozen(locations) && locations.length === 7 && locations.every(Object.isFrozen))
})

t.test('a manual edit is detected by the checksum, and the message says how to repair it', async t => {
  const { path, text } = await sample(t)
  const edited = text.replace('"population":892781', '"population":892782')
  writeFileSync(path, edited)
  const { message } = (await t.rejects(readSnapshot(path), InputError)) as unknown as Error
  t.match(message, `${path}: provenance, sha256: must be `)
  t.match(message, 'because the file was changed by hand')
  t.match(message, `"abohawa catalogue check ${path}" shows every fault`)
  t.match(message, '"abohawa catalogue publish" keeps it right')

  const right = message.match(/must be ([0-9a-f]{64})/)?.[1] ?? ''
  writeFileSync(path, edited.replace(/"sha256": "[0-9a-f]{64}"/, `"sha256": "${right}"`))
  t.equal((await readSnapshot(path)).locations[1]?.population, 892_782)
  const reversed = faultsAfter(text, ({ locations }) => void locations.reverse())
  t.strictSame(reversed, [], 'the order in the text does not affect it')
})

t.test(
  'the first fault is named with its row, the others are counted; a table is checked as one',
  async t => {
    const { path, text } = await sample(t)
    const file = JSON.parse(text)
    file.locations[3].latitude = 50
    file.locations[4].latitude = 51
    file.locations[4].population = '500'
    writeFileSync(path, JSON.stringify(file))
    await t.rejects(readSnapshot(path), {
      message: `${path}: locations[3] (id 10040913), latitude: must be a number from 20 to 27, got 50 (and 2 more faults); "abohawa catalogue check ${path}" shows every fault`,
    })
    const { counts, faults } = await checkFile(path, async () => bounds)
    t.equal(faults.length, 3)
    t.equal(counts.union, 3)
    const table = path.replace('locations.json', 'table.csv')
    writeFileSync(table, readFileSync(table, 'utf8').replace('division,20', 'region,20'))
    t.hasStrict(await checkFile(table, async () => bounds), { faults: [{ row: 'row 2', column: 'level' }] })
  },
)

t.test('the provenance must be complete, valid and of a known version, with right counts', async t => {
  const { text } = await sample(t)
  const outside = /must be a number from 22.5 to 27/
  for (const [head, ...faults] of [
    [{ schema: 2 }, /^provenance, schema: given 2; invalid input: expected 1/],
    [{ built: 'today' }, /^provenance, built: given "today"; invalid ISO date/],
    [{ sources: [] }, /^provenance, sources: /],
    [{ title: undefined }, /^provenance, title: given nothing; /],
    [{ sha256: 'none' }, /^provenance, sha256: given "none"; /],
    [{ other: 'fine' }, /^file, provenance: unrecognized key: "other"/],
    [{ bounds: { ...bounds, south: 22.5 } }, outside, ...Array<RegExp>(6).fill(/ /)],
    [{ bounds: { ...bounds, south: 28 } }, /^provenance, bounds\.south: .*must be less than north/],
    [{ bounds: undefined }, /^provenance, bounds: /],
    [{ counts: { division: -1 } }, ...Array<RegExp>(5).fill(/counts/)],
  ] as const)
    t.match(
      faultsAfter(text, ({ provenance }) => void Object.assign(provenance, head)),
      faults,
    )
  const orphans = faultsAfter(text, ({ locations }) => void locations.splice(2, 1))
  t.match(orphans, [
    'provenance, counts.upazila: must be 0, as many as the file has, got 1',
    'provenance, counts.total: must be 6, as many as the file has, got 7',
    /^locations\[2\] \(id 10040913\), parent_id: must be .*, got "100409", which no row has as its id/,
  ])
  t.equal(orphans.length, 2 + 3)
})

t.test('a value that is not an object, or has no places, is refused', async t => {
  const { text } = await sample(t)
  for (const other of ['null', '[]', '"text"', '{}', '{"provenance":{},"locations":[null]}'])
    t.ok(inspectSnapshot(other).faults.length > 0, other)
  const faultAfter = (change: (file: Json) => void) => faultsAfter(text, change)[0]
  const [none, list] = [
    faultAfter(file => void Object.assign(file, { locations: [] })),
    faultAfter(({ locations }) => void locations.push([] as never)),
  ]
  t.match([none, list], [/^file, locations: /, /^locations, \[7\]: /])
})

t.test('a file that is missing, a folder, cut off or not UTF-8 is named', async t => {
  const { text } = await sample(t)
  const folder = t.testdir({ sub: {}, 'half.json': text.slice(0, text.length / 2) })
  writeFileSync(join(folder, 'odd.json'), Buffer.from([0x7b, 0xff, 0x7d]))
  for (const [name, message] of [
    ['none.json', /none\.json can't be read: ENOENT/],
    ['sub', /sub can't be read: it is a directory$/],
    ['odd.json', /odd\.json must be text in UTF-8/],
    ['half.json', /half\.json: file, the whole: not JSON/],
  ] as const)
    await t.rejects(readSnapshot(join(folder, name)), { code: 'bad_input', message })
})

t.test('a text that is spoilt anywhere has faults, or an error that is meant for people', async t => {
  const { text } = await sample(t)
  let refused = 0
  const isMeant = (error: unknown) => error instanceof InputError && error.message.length < 10_000
  fc.assert(
    fc.property(edits, edit => {
      try {
        refused += Math.min(1, inspectSnapshot(edit(text)).faults.map(faultLine).length)
      } catch (error) {
        if (!isMeant(error)) throw error
        refused += 1
      }
    }),
    { seed: 7, numRuns: 300 },
  )
  t.ok(refused > 30, `${refused} were refused`)
})
