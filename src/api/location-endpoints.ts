// The endpoints with places and no weather: a page of a list, and a place. A catalogue never changes, so the most requested bodies are
// kept until another catalogue replaces it.

import { LRUCache } from 'lru-cache'
import type { Catalogue, ListPage } from '../catalogue/catalogue.ts'
import type { LocationType } from '../catalogue/location-schema.ts'
import type { EndpointName, WeatherEndpoint } from '../common/endpoints.ts'
import { AbohawaError } from '../common/errors.ts'
import { withoutKeys } from '../common/key-redaction.ts'
import { encodeWhole } from './content-coding.ts'
import { textOutOfPool } from './copy-out-of-pool.ts'
import type { Endpoint, Representation } from './endpoint.ts'
import { locationsParameters, type Query, queryOf } from './parameters.ts'
import { type CurrentCatalogue, findLocation } from './places.ts'
import { locatedAt, tagOf } from './representation.ts'
import { detailOf, listOf } from './response-bodies.ts'

const wanted = locationsParameters.query
type ListParameter = keyof typeof wanted

const parentParameters: Readonly<Partial<Record<LocationType, keyof Query<ListParameter>>>> = {
  district: 'division_id',
  upazila: 'district_id',
  union: 'upazila_id',
}

/** @param lists renders lists, which takes a search, or has only what is kept */
export const locationEndpointsOf = (
  served: CurrentCatalogue,
  rendered: RenderedLocations,
  lists = rendered,
): Readonly<Record<Exclude<EndpointName, WeatherEndpoint>, Endpoint>> => ({
  locations: ({ query: given }) => {
    const query = queryOf(given, wanted)
    const type = wanted.type.read(query.type)
    const parent = parentParameters[type]
    const limit = wanted.limit.read(query.limit)
    const offset = wanted.offset.read(query.offset)
    const q = wanted.q.read(query.q)
    const parentId = parent && wanted.division_id.read(query[parent])

    const catalogue = served.current
    // Only the parsed query: ignored parameters make no further body and are not repeated.
    const understood: Understood = {
      type,
      ...(parent && parentId !== undefined ? { [parent]: parentId } : {}),
      ...(q === '' ? {} : { q }),
    }
    return lists(JSON.stringify([understood, limit, offset]), catalogue, () => {
      const page = catalogue.list({ type, parentId, q, limit, offset })
      return { body: listOf(page, type, catalogue), link: linksOf(understood, page, limit, offset) }
    })
  },
  location: ({ params: { type = '', id = '' } }) => {
    const catalogue = served.current
    const location = findLocation(catalogue, type, id)
    const found = rendered(location.id, catalogue, () => ({
      body: { location: detailOf(location, catalogue) },
    }))
    return id === location.id ? found : locatedAt(found, location.id, {})
  },
})

type Understood = Query<Exclude<ListParameter, 'limit' | 'offset'>>

// Bounded, since there are other pages only where a list has matches, whose parents and texts are short.
const linksOf = (understood: Understood, { total }: ListPage, limit: number, offset: number): string => {
  const linkTo = (rel: string, to: number, size: number) => {
    const parameters = new URLSearchParams({ ...understood, limit: String(size), offset: String(to) })
    for (const [name, value] of parameters) parameters.set(name, withoutKeys(value))
    // Relative to the request's own URL, so that it leads there under the path of a proxy too.
    return `<?${parameters}>; rel="${rel}"`
  }
  // The page before ends where this one begins, or at the last match when this one lies beyond it.
  const end = Math.min(offset, total)
  const start = Math.max(0, end - limit)
  const next = offset + limit < total ? [linkTo('next', offset + limit, limit)] : []
  const prev = end > 0 ? [linkTo('prev', start, end - start)] : []
  return [...next, ...prev].join(', ')
}

// Places change when an operator swaps the catalogue; a minute is how long a consumer may not have heard of it.
const metadataHeaders = 'cache-control: private, max-age=60\r\n'

// The rough overhead of a kept body beside its bytes.
const objectBytes = 600

type Rendered = { readonly body: object; readonly link?: string }
export type RenderedLocations = (name: string, catalogue: Catalogue, render: () => Rendered) => Representation

/**
 * Keeps rendered bodies by name, as long as their catalogue is in force.
 * @param keepBytes what they may take
 * @returns `held` renders nothing. @throws AbohawaError for what is not kept
 */
export const createRenderedLocations = (
  keepBytes: number,
): { readonly rendered: RenderedLocations; readonly held: RenderedLocations } => {
  const kept = new LRUCache<string, Representation>({
    maxSize: keepBytes,
    sizeCalculation: ({ chunks: [bytes] }, name) => bytes.length + name.length + objectBytes,
  })
  let of: Catalogue | undefined

  const keptOf = (name: string, catalogue: Catalogue): Representation | undefined => {
    if (of !== catalogue) {
      kept.clear()
      of = catalogue
    }
    return kept.get(name)
  }
  const rendered: RenderedLocations = (name, catalogue, render) => {
    const found = keptOf(name, catalogue)
    if (found) return found
    const { body, link } = render()
    const bytes = textOutOfPool(JSON.stringify(body))
    let encodedBytes = 0
    const representation: Representation = {
      tag: tagOf(bytes),
      headers: link ? `${metadataHeaders}link: ${link}\r\n` : metadataHeaders,
      chunks: [bytes],
      encode: encodeWhole(bytes, encoded => {
        encodedBytes += encoded.length
        if (kept.peek(name) !== representation) return
        // The library leaves the size of a value as it is when the same value is set again.
        kept.delete(name)
        kept.set(name, representation, { size: bytes.length + name.length + objectBytes + encodedBytes })
      }),
    }
    kept.set(name, representation)
    return representation
  }
  const held: RenderedLocations = (name, catalogue) => {
    const found = keptOf(name, catalogue)
    if (!found) throw new AbohawaError('not_in_memory', `memory does not hold ${name}`)
    return found
  }
  return { rendered, held }
}
