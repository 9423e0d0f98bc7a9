// Reads settings from environment variables, named after their paths. Text is taken as it is, so that a key of digits stays
// text; numbers, flags and lists are parsed as YAML. Variables of other programs are ignored.

import { parse } from 'yaml'
import * as z from 'zod'
import { safeText } from '../outside-text.ts'
import { type Assignment, type Fault, type Reading, unusableName } from './faults.ts'
import { renamedSettings } from './renamed.ts'
import { allowsNull, coreOf, nearestOf, type Setting, schemaAt, settings } from './tree.ts'

const PREFIX = 'ABOHAWA_'
const longestName = 80
const IGNORED = 'ABOHAWA_TEST_'

/** The variable of a setting: provider.baseUrl is ABOHAWA_PROVIDER__BASE_URL. */
export const variableOf = (path: readonly string[]): string =>
  PREFIX +
  path
    .map(key =>
      key
        .replace(/(?<=[a-z0-9])(?=[A-Z])/g, '_')
        .replaceAll('-', '_')
        .toUpperCase(),
    )
    .join('__')

const renamedVariables = new Map(
  Object.entries(renamedSettings).map(
    paths => paths.map(path => variableOf(path.split('.'))) as [string, string],
  ),
)

const shownVariable = ({ path, named }: Setting): string => variableOf(path) + (named ? '__<NAME>' : '')

const namedSettings = settings.map(({ path, named }) => ({ path, named, name: variableOf(path) }))

const pathOf = (variable: string): readonly string[] | undefined => {
  for (const { path, named, name } of namedSettings) {
    if (!named && variable === name) return path
    if (named && variable.startsWith(`${name}__`))
      return [
        ...path,
        variable
          .slice(name.length + 2)
          .toLowerCase()
          .replaceAll('_', '-'),
      ]
  }
  return undefined
}

const asYaml = (text: string): unknown => {
  try {
    return parse(text)
  } catch {
    return text
  }
}

const asList = (text: string): unknown =>
  text.trimStart().startsWith('[')
    ? asYaml(text)
    : text
        .split(',')
        .map(item => item.trim())
        .filter(item => item !== '')

const meaningOf = (text: string, schema: z.core.$ZodType): unknown => {
  const core = coreOf(schema)
  if (core instanceof z.ZodArray) return asList(text)
  if (text === '') return allowsNull(schema) ? null : text
  return core instanceof z.ZodNumber || core instanceof z.ZodBoolean ? asYaml(text) : text
}

const read = (variable: string, text: string): Assignment | Fault => {
  const path = pathOf(variable)
  const schema = path && schemaAt(path)
  if (path && schema) {
    const sentence = unusableName(variable, path)
    return sentence === undefined
      ? { path, value: meaningOf(text, schema), at: () => variable }
      : { sentence }
  }
  const renamed = renamedVariables.get(variable)
  if (renamed !== undefined)
    return { sentence: `${variable}: this variable is now called ${renamed}; use that name` }
  const nearest = nearestOf(variable, settings, setting => variableOf(setting.path))
  const suggestion = nearest ? `; did you mean ${shownVariable(nearest)}?` : ''
  return { sentence: `${safeText(variable, longestName)}: this variable is not known${suggestion}` }
}

/** What the variables that start with ABOHAWA_ say; those that start with ABOHAWA_TEST_ are left alone. */
export const readEnvironment = (env: NodeJS.ProcessEnv): Reading =>
  Object.entries(env)
    .filter(([variable]) => variable.startsWith(PREFIX) && !variable.startsWith(IGNORED))
    .flatMap(([variable, text]) => (text === undefined ? [] : [read(variable, text)]))
