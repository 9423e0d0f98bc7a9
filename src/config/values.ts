// The values of a configuration in the form of a file, with secrets hidden; the differences of two, and when each takes effect.

import { hash } from 'node:crypto'
import { createRequire } from 'node:module'
import type { ToStringOptions } from 'yaml'
import * as z from 'zod'
import { redactedUrls } from '../common/redacted-url.ts'
import type { Tree } from './faults.ts'
import { liveSettings, secrets } from './kinds.ts'
import { type Config, configSchema } from './schema.ts'
import { coreOf, itemOf, partsOf, printPath, type Setting, settings } from './tree.ts'

const require = createRequire(import.meta.url)

/** The YAML library, loaded on demand: a start with settings from the environment does not need its 70 files. */
export const yamlLibrary = (): typeof import('yaml') => require('yaml')

/** When a change of a setting takes effect. */
export type Effect = 'live' | 'restart'

/** The value of a setting, or of one name in a map of names, in the form of a file. */
export type SettingValue = {
  /** As people write it: `quota.tiers.free`. */
  readonly path: string
  readonly setting: Setting
  readonly value: unknown
  /** The value on one line, without what is secret in it. */
  readonly shown: string
}

/** A value that differs between two configurations; undefined where one has no such name. */
export type Change = {
  readonly path: string
  readonly before: string | undefined
  readonly after: string | undefined
  readonly effect: Effect
}

// A parser that is compiled first takes longer for the few times that it is used, and holds up requests meanwhile.
const uncompiled = { jitless: true }

/** The value, and all in it, never to be changed. */
export const frozen = <Value>(value: Value): Value => {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(frozen)
  return value
}

type Part = { readonly [key: string]: unknown }

const isPart = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Both merged, section by section; the second wins. */
export const together = <One extends Part, Other extends Part>(one: One, other: Other): One & Other => {
  const both: Record<string, unknown> = { ...one, ...other }
  for (const [key, part] of Object.entries(other)) {
    const before = one[key]
    if (isPart(part) && isPart(before)) both[key] = together(before, part)
  }
  return both as One & Other
}

const encoded = (config: Config): Tree =>
  z.encode(configSchema, config as never, uncompiled) as unknown as Tree

export const valueAt = (tree: unknown, path: readonly string[]): unknown =>
  path.reduce((part, key) => (part as Tree | undefined)?.[key], tree)

/** Sets a value, in sections that are made where they are missing; undefined takes it out. */
export const put = (tree: Tree, path: readonly string[], value: unknown): void => {
  let section = tree
  for (const key of path.slice(0, -1)) {
    section[key] ??= {}
    section = section[key] as Tree
  }
  const key = path.at(-1) ?? ''
  if (value === undefined) delete section[key]
  else section[key] = value
}

/** A value in the form of a file, without secrets. A key that is in its own file is shown as that file. */
const redacted = (schema: z.core.$ZodType, value: unknown): unknown => {
  if (typeof value === 'string') return secrets.get(coreOf(schema))?.redact(value) ?? value
  const [item, parts] = [itemOf(schema), partsOf(schema)]
  if (item && Array.isArray(value)) return value.map(one => redacted(item, one))
  if (!parts || !isPart(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => [
      key,
      value[`${key}File`] ? null : parts[key] ? redacted(parts[key], part) : part,
    ]),
  )
}

/** On one line. */
const shownOf = (schema: z.core.$ZodType, value: unknown): string =>
  yamlOf(redacted(schema, value), { collectionStyle: 'flow' }).trimEnd()

const yamlOf = (value: unknown, options: ToStringOptions): string =>
  yamlLibrary().stringify(value, (_, part) => (typeof part === 'string' ? redactedUrls(part) : part), {
    lineWidth: 0,
    ...options,
  })

/** The whole configuration as a config file, with `***` for keys and passwords; the rest can be loaded again as it is. */
export const describeConfig = (config: Config): string => {
  const tree = encoded(config)
  for (const { path, schema } of settings) put(tree, path, redacted(schema, valueAt(tree, path)))
  return yamlOf(tree, {})
}

/** Every value of a configuration, in the order of the sections. */
export const valuesOf = (config: Config): SettingValue[] => {
  const tree = encoded(config)
  return settings.flatMap(setting => {
    const value = valueAt(tree, setting.path)
    const paths = setting.named
      ? Object.keys(value as Tree).map(name => [...setting.path, name])
      : [setting.path]
    return paths.map(path => {
      const part = valueAt(tree, path)
      return {
        path: printPath(path),
        setting,
        value: part,
        get shown() {
          return shownOf(setting.schema, part)
        },
      }
    })
  })
}

/** When a change of this setting takes effect, whatever the change. */
export const effectOf = ({ schema }: Setting): Effect => (liveSettings.has(schema) ? 'live' : 'restart')

/** The changes of a live setting that need a restart, as the end of a sentence. */
export const exceptionOf = ({ schema }: Setting): string | undefined => liveSettings.get(schema)?.except

/** The differences of one value, or of each common item of a list of maps. */
const differences = (schema: z.core.$ZodType, one: unknown, other: unknown, path: string): Change[] => {
  if (JSON.stringify(one) === JSON.stringify(other)) return []
  const [item, parts] = [itemOf(schema), partsOf(schema)]
  if (item && partsOf(item) && Array.isArray(one) && Array.isArray(other))
    return Array.from({ length: Math.max(one.length, other.length) }, (_, i) =>
      differences(item, one[i], other[i], `${path}[${i}]`),
    ).flat()
  if (parts && isPart(one) && isPart(other))
    return Object.entries(parts).flatMap(([key, part]) =>
      differences(part, one[key], other[key], `${path}.${key}`),
    )
  const [before, after] = [one, other].map(value => (value === undefined ? value : shownOf(schema, value)))
  const isLive = liveSettings.has(schema) && !liveSettings.get(schema)?.needsRestart?.(one, other)
  return [{ path, before, after, effect: isLive ? 'live' : 'restart' }]
}

/** The differences between two configurations, and whether each takes effect without a restart. */
export const changesBetween = (before: Config, after: Config): Change[] => {
  const values = new Map(valuesOf(before).map(each => [each.path, each]))
  const next = new Map(valuesOf(after).map(each => [each.path, each]))
  const paths = [...new Set([...next.keys(), ...values.keys()])]
  return paths.flatMap(path => {
    const [one, other] = [values.get(path), next.get(path)]
    const { setting } = (one ?? other) as SettingValue
    return differences(setting.schema, one?.value, other?.value, path)
  })
}

/** A configuration with the values of another at these paths, and its own everywhere else. */
export const withValuesOf = (config: Config, other: Config, paths: Iterable<string>): Config => {
  const [tree, from] = [encoded(config), encoded(other)]
  for (const path of paths) {
    const keys = path.replaceAll(']', '').split(/[.[]/)
    put(tree, keys, valueAt(from, keys))
  }
  const settings = configSchema.parse(tree, uncompiled)
  // All of the quota is settings, and a tier that was taken back must not stay.
  return frozen({ ...together(config, settings), quota: settings.quota })
}

// The settings that may differ between instances: addresses, log and files.
const ofOneInstance = /^(server|ops|health|store|redis|log)\.|^catalogue\.path$/
const withoutFiles = (name: string, value: unknown): unknown => (name === 'apiKeyFile' ? undefined : value)

/** A short hash of the settings that all instances of a fleet should have in common. */
export const fleetHashOf = (config: Config): string => {
  const shared = valuesOf(config).filter(({ path }) => !ofOneInstance.test(path))
  const text = JSON.stringify(shared.map(({ path, value }) => [path, value]).sort(), withoutFiles)
  return hash('sha256', text).slice(0, 12)
}
