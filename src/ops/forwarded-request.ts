// A request to /provider/… as it may go to the provider: its path decoded once and checked, its parameters known by name,
// its weight counted. The request is built from checked parts and from nothing else. Which paths and parameters
// there are is the protocol's. Pure; sends nothing.

import { holdsKey } from '../key-redaction.ts'
import { quoted } from '../outside-text.ts'
import type { PassthroughProtocol, PathParameters } from '../provider/protocol.ts'
import { Refusal } from './refusal.ts'

export type ForwardedRequest = {
  /** Path and query, canonically encoded, to be put behind the provider's base URL. */
  readonly target: string
  /** Its weight at the provider, over all points; 0 where it counts nothing. */
  readonly weight: number
}

/** @param target of the request, behind `/provider`. @throws Refusal */
export const forwardedRequest = (target: string, protocol: PassthroughProtocol): ForwardedRequest => {
  if (holdsKey(target))
    throw new Refusal(
      400,
      'query',
      'the URL holds an API key of this gateway; allowed: one without, the provider would log it',
    )
  const [rawPath = '', ...rest] = target.split('?')
  const { path, allowed } = checkedPath(rawPath, protocol)
  const query = new URLSearchParams(rest.join('?'))
  // The key is ours; the caller's own goes nowhere.
  query.delete(protocol.keyParameter)
  const parameters = checkedParameters(query, allowed)
  const text = new URLSearchParams([...parameters]).toString().replaceAll('%2C', ',')
  return {
    target: text === '' ? path : `${path}?${text}`,
    weight: protocol.weightOf(path, parameters),
  }
}

const checkedPath = (
  raw: string,
  { paths, parametersOf }: PassthroughProtocol,
): { path: string; allowed: PathParameters } => {
  const path = decoded(raw)
  const allowedPaths = paths.join(' and ')
  const fault = path === undefined ? 'is not percent-encoded UTF-8' : formFault(raw, path)
  if (path === undefined || fault !== undefined)
    throw new Refusal(400, 'path', `the path ${quoted(path ?? raw)} ${fault}; allowed: ${allowedPaths}`)
  const allowed = parametersOf(path)
  if (allowed) return { path, allowed }
  throw new Refusal(404, 'path', `the path ${quoted(path)} is not let through; allowed: ${allowedPaths}`)
}

const decoded = (raw: string): string | undefined => {
  try {
    return decodeURIComponent(raw)
  } catch {
    return undefined
  }
}

// Each is a way to be read as one path here and as another behind.
const formFault = (raw: string, path: string): string | undefined => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  if (/[\x00-\x1f\x7f]/.test(path)) return 'holds a control character'
  if (path.includes('\\')) return 'holds a backslash'
  if (path.includes('%')) return 'is percent-encoded twice'
  if (/%2f/i.test(raw)) return 'holds an encoded slash'
  if (path.includes('//')) return 'holds an empty segment'
  if (/(^|\/)\.\.?(\/|$)/.test(path)) return 'holds a dot segment'
  return undefined
}

// Names that are not known are refused and not dropped: some of them multiply the points.
const checkedParameters = (
  query: URLSearchParams,
  { lists, counts, choices }: PathParameters,
): Map<string, string> => {
  const single = [...counts, ...choices]
  const checked = new Map<string, string>()
  for (const name of new Set(query.keys())) {
    const values = query.getAll(name)
    if (!lists.includes(name) && !single.includes(name))
      throw new Refusal(
        400,
        'query',
        `the parameter ${quoted(name)} is not let through; allowed: ${[...lists, ...single].join(', ') || 'none'}`,
      )
    if (single.includes(name) && values.length > 1)
      throw new Refusal(400, 'query', `${name} is given more than once; allowed: at most once`)
    const value = values.join(',')
    if (counts.includes(name) && !/^\d{1,5}$/.test(value))
      throw new Refusal(
        400,
        'query',
        `${name} is ${quoted(value)}; allowed: a whole number of at most 5 digits`,
      )
    checked.set(name, value)
  }
  return checked
}
