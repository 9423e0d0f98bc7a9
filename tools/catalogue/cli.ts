// `abohawa catalogue …`: builds, checks and publishes the snapshot of places.

import { type Fault, faultLine } from 'abohawa/catalogue/check.ts'
import type { Counts } from 'abohawa/catalogue/location-schema.ts'
import { catalogueFile } from 'abohawa/catalogue/snapshot-reader.ts'
import { type AddTopCommand, numbered, type Terminal } from 'abohawa/command-line/terminal.ts'
import { checkOutputs, outputsOf } from 'abohawa/command-line/writable.ts'
import { isoOf } from 'abohawa/common/calendar.ts'
import { printable } from 'abohawa/common/outside-text.ts'
import { buildSnapshot, checkFile, factsFor } from './build.ts'
import { setPublished } from './publication.ts'

export const addCommand: AddTopCommand = (program, add, summary) => {
  const catalogue = program.command('catalogue').summary(summary).description('The catalogue of places.')

  add<{ from: string; aliases?: string; changes?: string; facts?: string; out: string }>(catalogue, 'build', {
    summary: 'build the catalogue from CSV tables',
    example:
      'catalogue build --from places.csv --aliases aliases.csv --changes changes.csv --out locations.json',
    setUp: command =>
      command
        .requiredOption('--from <csv>', 'the table of places')
        .option('--aliases <csv>', 'other names of the places; none without it')
        .option('--changes <csv>', 'administrative changes, for former codes; none without it')
        .option(
          '--facts <json>',
          'title, bounds and sources of the places; those of the configured snapshot without it',
        )
        .requiredOption('--out <json>', 'the snapshot to write; left unchanged when a table has a fault'),
    run: async (terminal, { from, aliases, changes, facts, out }) => {
      // A rebuild replaces a snapshot, and nothing else.
      const rules = { inputs: [from, aliases, changes, facts], force: true, isCatalogue: true }
      await checkOutputs(terminal, outputsOf('--out', out), rules)
      const { faults, ...built } = await buildSnapshot({
        csvPath: from,
        aliasesPath: aliases,
        changesPath: changes,
        outPath: out,
        facts: await factsFor(facts, terminal.config().catalogue.path),
        builtOn: isoOf(terminal.clock.now()).slice(0, 10),
      })
      const { counts, aliases: names, formerIds, keptUnpublished } = built
      if (faults.length > 0) return showFaults(terminal, from, counts, faults)
      const more =
        names + formerIds === 0
          ? ''
          : `, ${numbered(names, 'alias', 'aliases')}, ${numbered(formerIds, 'former code', 'former codes')}`
      const kept = keptUnpublished.length > 0 ? `; ${keptUnpublished.length} stay unpublished` : ''
      terminal.show({ out, ...built }, `${out}: ${countsText(counts)}${more}${kept}.`)
    },
  })

  add(catalogue, 'check', {
    summary: 'report every fault of a catalogue (JSON) or table (CSV) with its row',
    example: 'catalogue check locations.json',
    setUp: command => command.argument('[file]', 'the file to check; the configured snapshot if not given'),
    run: async (terminal, _options, file) => {
      const { path } = terminal.config().catalogue
      const checked = file ?? catalogueFile(path)
      const bounds = async () => (await factsFor(undefined, path)).bounds
      const { counts, faults } = await checkFile(checked, bounds)
      if (faults.length > 0) return showFaults(terminal, checked, counts, faults)
      terminal.show({ file: checked, counts, faults }, `${checked}: ${countsText(counts)}, no fault.`)
    },
  })

  add<{ undo?: boolean }>(catalogue, 'publish', {
    summary: 'publish a place, or hide it with --undo',
    example: 'catalogue publish 302602 --undo',
    setUp: command => command.argument('<id>', 'id of the place').option('--undo', 'hide it'),
    run: async (terminal, { undo = false }, id = '') => {
      const { path } = terminal.config().catalogue
      const { changed, location } = await setPublished(catalogueFile(path), id, !undo)
      terminal.show(
        { id, type: location.type, published: !undo, changed },
        `${printable(location.name_en)} (${location.type} ${id}) ${changed ? 'is now' : 'was already'} ${undo ? 'unpublished' : 'published'}.`,
      )
    },
  })
}

const showFaults = (terminal: Terminal, file: string, counts: Counts, faults: readonly Fault[]): number => {
  terminal.show({ file, counts, faults }, faults.map(fault => printable(faultLine(fault))).join('\n'))
  terminal.remark(`abohawa: ${file} has ${numbered(faults.length, 'fault', 'faults')}`)
  return 1
}

const countsText = ({ total, ...byType }: Counts): string =>
  `${numbered(total, 'place', 'places')} (${Object.entries(byType)
    .map(([type, count]) => numbered(count, type, `${type}s`))
    .join(', ')})`
