// The part of a broken configuration that a command needs: operators get at a gateway, its store and its keys while a file has a
// fault elsewhere. Decides which settings a fault leaves unknown; never takes a default for one that may have been meant.

import { sectionOfVariable } from './environment.ts'
import type { Fault } from './faults.ts'
import { ConfigError, type ConfigFault, type ConfigSources, readRightPart } from './load.ts'
import type { Config } from './schema.ts'
import { nearestPath, nearestSection, type Path, printPath, schemaAt } from './tree.ts'

export type RightPart = {
  readonly config: Config
  /** All that is wrong, also with what is not needed. */
  readonly faults: readonly ConfigFault[]
  /** @param needed settings and sections, such as `redis` @throws ConfigError when a fault leaves one of them unknown */
  require(needed: readonly string[]): void
}

/** The source of a section when a whole file is unreadable: a variable wins over any file. */
const identity: Readonly<Record<string, string>> = { redis: 'redis.url', store: 'redis.url', ops: 'ops.port' }

const isWithin = (path: string, section: string): boolean =>
  path === section || path.startsWith(`${section}.`)

/** The settings or sections that a fault leaves unknown; undefined for every one. */
const unknownBy = ({ at, path = [], setting, sections = [] }: Fault): readonly string[] | undefined => {
  if (setting && setting.length > 0) return [printPath(setting)]
  if (path.length === 0) {
    if (!('variable' in at)) return undefined
    const section = sectionOfVariable(at.variable)
    return section === undefined ? [] : [section]
  }
  if (schemaAt(path)) return [printPath(path), ...sections]
  // A name that is not known may be any of its section, or one of another place.
  const [parent, meant, section]: (Path | undefined)[] = [
    path.slice(0, -1),
    nearestPath(path),
    path.length === 1 ? [nearestSection(String(path[0]))].filter(name => name !== undefined) : [],
  ]
  return [parent, meant, section].flatMap(each => (each && each.length > 0 ? [printPath(each)] : []))
}

/** @throws ConfigError where nothing can be made of the configuration */
export const rightPartOf = (sources: ConfigSources): RightPart => {
  const { loaded, faults } = readRightPart(sources)
  const isGivenByVariable = (path: string): boolean => 'variable' in (loaded.origins.get(path) ?? {})
  const leavesUnknown = (fault: Fault, needed: string): boolean => {
    const unknown = unknownBy(fault)
    if (!unknown) return !isGivenByVariable(identity[needed] ?? needed)
    return unknown.some(path => isWithin(path, needed) || isWithin(needed, path))
  }
  return {
    config: loaded.config,
    faults: faults.map(({ printed }) => printed),
    require: needed => {
      if (faults.some(fault => needed.some(each => leavesUnknown(fault, each))))
        throw new ConfigError(faults.map(({ printed }) => printed))
    },
  }
}
