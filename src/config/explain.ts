// Explains settings from the schema: purpose, allowed values, default, value, origin, variable, effect.

import * as z from 'zod'
import { variableOf } from './environment.ts'
import { type Place, printPlace } from './faults.ts'
import { secrets } from './kinds.ts'
import { type LoadedConfig, loadConfig } from './load.ts'
import { coreOf, descriptionOf, type Setting } from './tree.ts'
import { type Effect, effectOf, exceptionOf, valuesOf } from './values.ts'

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
  readonly variable: string
  readonly allowed: string
  readonly text: string
}

/** What a setting may be, or a name in it. The schema says so in its errors, and nothing fits a symbol. */
export const allowedIn = ({ schema, named }: Setting, isNamed = false): string =>
  z.safeParse(isNamed && named ? named.valueType : schema, Symbol('none')).error?.issues[0]?.message ?? ''

const originOf = (place: Place | undefined): string => {
  if (!place) return 'default'
  return 'file' in place
    ? printPlace({ file: place.file, ...(place.line && { line: place.line }) })
    : printPlace(place)
}

/** A map of an operator's own name is given field by field: the place of the last one given. */
const placeIn = (origins: LoadedConfig['origins'], path: string): Place | undefined =>
  origins.get(path) ?? [...origins].findLast(([given]) => given.startsWith(`${path}.`))?.[1]

/** Every value of a configuration, in the order of the sections. */
export const explainConfig = ({ config, origins }: LoadedConfig): ExplainedSetting[] => {
  const usual = new Map(valuesOf(loadConfig({ files: [], env: {} })).map(({ path, shown }) => [path, shown]))
  return valuesOf(config).map(({ path, setting, shown }) => {
    const keys = path.split('.')
    const isNamed = keys.length > setting.path.length
    return {
      path,
      value: shown,
      default: usual.get(path),
      origin: originOf(placeIn(origins, path)),
      effect: effectOf(setting),
      except: exceptionOf(setting),
      variable: variableOf(keys) + (secrets.has(coreOf(setting.schema)) ? '[__FILE]' : ''),
      allowed: allowedIn(setting, isNamed),
      text: descriptionOf(setting.schema),
    }
  })
}
