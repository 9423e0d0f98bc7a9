// Explains settings: what each is for, what it may be, its default, its value and where that was given, its variable, and
// whether a change needs a restart. All of it is read from the schema and from default.yaml.

import * as z from 'zod'
import { DEFAULT_NAME } from './default-file.ts'
import { type Entry, readDefaults } from './defaults.ts'
import { variableOf } from './environment.ts'
import { printPlace } from './faults.ts'
import { secrets } from './kinds.ts'
import { type LoadedConfig, loadConfig } from './load.ts'
import { coreOf, nearestPath, printPath, type Setting } from './tree.ts'
import { type Effect, effectOf, exceptionOf, valuesOf } from './values.ts'
import { withoutEffect } from './without-effect.ts'

/** A setting with its value; `default` is undefined for a name of the operator's own. */
export type ExplainedSetting = {
  readonly path: string
  readonly value: string
  readonly default: string | undefined
  /** `default`, `file:line`, or the name of a variable. */
  readonly origin: string
  readonly effect: Effect
  /** The changes that need a restart although others do not. */
  readonly except: string | undefined
  /** Why it has no effect beside the other settings; undefined where it has one. */
  readonly withoutEffect: string | undefined
  readonly variable: string
  readonly allowed: string
  readonly text: string
}

const textAt = (entries: Map<string, Entry>, [key = '', ...rest]: readonly string[]): string => {
  const entry = entries.get(key)
  return rest.length > 0 && entry ? textAt(entry.below, rest) : (entry?.comment ?? '')
}

// The schema names what it allows in its errors, and nothing fits a symbol.
const allowedIn = ({ schema, named }: Setting, isNamed: boolean): string =>
  z.safeParse(isNamed && named ? named.valueType : schema, Symbol('none')).error?.issues[0]?.message ?? ''

const originOf = (place: ReturnType<LoadedConfig['origins']['get']>): string => {
  if (!place || ('file' in place && place.file === DEFAULT_NAME)) return 'default'
  return 'file' in place
    ? printPlace({ file: place.file, ...(place.line && { line: place.line }) })
    : printPlace(place)
}

/** Every value of a configuration, in the order of the sections. */
export const explainConfig = ({ config, origins }: LoadedConfig): ExplainedSetting[] => {
  const defaults = readDefaults()
  const usual = new Map(valuesOf(loadConfig({ files: [], env: {} })).map(({ path, shown }) => [path, shown]))
  const idle = withoutEffect(config)
  return valuesOf(config).map(({ path, setting, shown }) => {
    const keys = path.split('.')
    const isNamed = keys.length > setting.path.length
    return {
      path,
      value: shown,
      default: usual.get(path),
      origin: originOf(origins.get(path)),
      effect: effectOf(setting),
      except: exceptionOf(setting),
      withoutEffect: idle.get(path),
      variable: variableOf(keys) + (secrets.has(coreOf(setting.schema)) ? '[__FILE]' : ''),
      allowed: allowedIn(setting, isNamed),
      text: textAt(defaults, keys) || textAt(defaults, setting.path),
    }
  })
}

/** The settings at or below a path. */
export const explainPath = (loaded: LoadedConfig, path: string): ExplainedSetting[] =>
  explainConfig(loaded).filter(each => each.path === path || each.path.startsWith(`${path}.`))

/** The known path nearest to an unknown one: of a setting or a section; undefined where none is near. */
export const nearestKnown = (path: string): string | undefined => {
  const nearest = nearestPath(path.split('.'))
  return nearest && printPath(nearest)
}
