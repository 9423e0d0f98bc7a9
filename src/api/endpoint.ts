// The type of an endpoint of the API, and the paths that are served beside the endpoints. Each endpoint has a file of its own in
// endpoints/; api.ts registers it at its path in src/common/endpoints.ts.

import { apiPrefix, type EndpointName, templateOf } from '../common/endpoints.ts'
import type { Representation } from './representation.ts'

type EndpointRequest = {
  /** Path parameters by name, decoded; never empty. */
  readonly params: Readonly<Record<string, string>>
  /** The query as it came, without its question mark. */
  readonly query: string
  /** The id of the key that it came with; undefined for tools, which have none. */
  readonly keyId?: string | undefined
}

/** Answers a GET or HEAD. @throws Problem */
export type Endpoint = (request: EndpointRequest) => Representation | Promise<Representation>

/** The paths of the API's reference, open to anyone and uncounted. */
export const referencePaths: readonly string[] = [
  `${apiPrefix}/openapi.json`,
  '/docs',
  '/docs/reference.css',
  '/docs/reference.js',
  '/docs/icon.svg',
]

/** Where people and tools look for the reference first, and where it is from there: a proxy may serve all of it under a path. */
export const referenceRedirects: ReadonlyMap<string, string> = new Map([
  ['/', 'docs'],
  ['/docs/', '../docs'],
  ['/openapi.json', `${apiPrefix.slice(1)}/openapi.json`],
])

/** The paths of endpoints as people write them, for an error that lists them. */
export const pathsOf = (names: readonly EndpointName[]): string => {
  const [first = '', ...others] = names.map(templateOf)
  const all = [apiPrefix + first, ...others]
  return `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`
}
