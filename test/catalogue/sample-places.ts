// A small valid table: two divisions, a district, an upazila and three unions.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bounds } from '../../src/catalogue/location-schema.ts'
import type { Facts, Source } from '../../src/catalogue/snapshot.ts'
import { type BuildReport, buildSnapshot } from '../../tools/catalogue/build.ts'

export const bounds: Bounds = { south: 20, north: 27, west: 87.5, east: 93 }

const sources: readonly Source[] = [
  { name: 'a list of places', url: 'https://places.example/list', licence: 'MIT', date: '2026-01-31' },
]

export const facts: Facts = { title: 'Sample', bounds, sources }

export type TableRow = Record<string, string>

const samplePlace = (level: string, code: string, parent: string, name: string, population: number) => ({
  level,
  bbs_code: code,
  parent_bbs_code: parent,
  name_en: name,
  name_bn: 'আমতলী',
  slug_en: name.toLowerCase().replaceAll(' ', '-'),
  latitude: '22.0614',
  longitude: '90.1523',
  area_sq_km: '41.23',
  population: String(population),
  population_basis: 'census-2011',
  website: 'https://places.example/one',
  coordinates_basis: 'seat',
  name_bn_basis: 'list',
})

/** Fresh rows that a test may damage; line numbers are index + 2. */
export const sampleRows = (): TableRow[] => [
  samplePlace('division', '20', '', 'Chattogram', 28_423_019),
  samplePlace('division', '10', '', 'Barishal', 8_325_666),
  samplePlace('district', '1004', '10', 'Barguna', 892_781),
  samplePlace('upazila', '100409', '1004', 'Amtali Sadar', 270_802),
  samplePlace('union', '10040915', '100409', 'Arpangashia', 500),
  samplePlace('union', '10040913', '100409', 'Amtali', 500),
  samplePlace('union', '10040923', '100409', 'Atharagashia', 700),
]

const quoted = (field: string): string => (/[",\n]/u.test(field) ? `"${field.replaceAll('"', '""')}"` : field)

/** An alias of a place, under the columns that its table must have. */
export const aliasRow = (code: string, alias: string, kind = 'common', language = 'en'): TableRow => ({
  bbs_code: code,
  language,
  alias,
  kind,
})

/** A union that has a new code since a day, under the columns that its table must have. */
export const changeRow = (before: string, now: string, date = '2012-04-25'): TableRow => ({
  date,
  kind: 'new-code',
  level: 'union',
  old_code: before,
  new_code: now,
  in_table: 'yes',
})

/** The rows as CSV, under the columns of the first. */
export const tableText = (rows: readonly TableRow[]): string => {
  const columns = Object.keys(rows[0] ?? {})
  const lines = rows.map(row => columns.map(column => quoted(row[column] ?? '')).join(','))
  return `${[columns.join(','), ...lines].join('\n')}\n`
}

/** Builds `locations.json` in a folder from these rows, with aliases and changes where there are any. */
export const buildSample = (
  folder: string,
  rows: readonly TableRow[] = sampleRows(),
  { aliases, changes }: { aliases?: readonly TableRow[]; changes?: readonly TableRow[] } = {},
): Promise<BuildReport & { path: string }> => {
  const [csvPath, path] = [join(folder, 'table.csv'), join(folder, 'locations.json')]
  writeFileSync(csvPath, tableText(rows))
  const written = (name: string, rows: readonly TableRow[] | undefined): string | undefined => {
    if (rows === undefined) return undefined
    writeFileSync(join(folder, name), tableText(rows))
    return join(folder, name)
  }
  const options = {
    csvPath,
    aliasesPath: written('aliases.csv', aliases),
    changesPath: written('changes.csv', changes),
    outPath: path,
    facts,
    builtOn: '2026-11-21',
  }
  return buildSnapshot(options).then(report => ({ ...report, path }))
}
