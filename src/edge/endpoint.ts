// An endpoint of the API: its path, the name under which it is logged and counted, and what it answers. Each stands in a
// file of its own under endpoints/; api.ts registers them.

import type { Representation } from './representation.ts'

type EndpointRequest = {
  /** Path parameters by name, decoded; never empty. */
  readonly params: Readonly<Record<string, string>>
  /** The query as it came, without its question mark. */
  readonly query: string
  /** The id of the key that it came with; undefined for tools, which have none. */
  readonly keyId?: string | undefined
}

export type Endpoint = {
  /** In logs, metrics and usage by endpoint. */
  readonly name: string
  /** Below `/api/v1`, as Fastify writes it. */
  readonly path: string
  /** Answers a GET or HEAD. @throws Problem */
  readonly answer: (request: EndpointRequest) => Representation | Promise<Representation>
}

export const apiPrefix = '/api/v1'

/** What is served of the API's reference, to anyone and uncounted. */
export const referencePaths: readonly string[] = [
  `${apiPrefix}/openapi.json`,
  '/docs',
  '/docs/reference.css',
  '/docs/reference.js',
  '/docs/icon.svg',
]

/** Where people and tools look for the reference first, and where it is. */
export const referenceRedirects: ReadonlyMap<string, string> = new Map([
  ['/', '/docs'],
  ['/docs/', '/docs'],
  ['/openapi.json', `${apiPrefix}/openapi.json`],
])

/** The paths of endpoints as people write them, for an error that lists them. */
export const pathsOf = (endpoints: readonly Endpoint[]): string => {
  const paths = endpoints.map(({ path }) => path.replaceAll(/:(\w+)/g, '{$1}'))
  const [first = '', ...others] = paths
  const all = [apiPrefix + first, ...others]
  return `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`
}
