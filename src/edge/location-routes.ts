// GET /locations and /locations/{type}/{id}: places without weather. A catalogue never changes, so what was rendered of
// it is kept until another takes its place, the most wanted up to a bound.

import { LRUCache } from 'lru-cache'
import type { Catalogue, ListPage } from '../catalogue/catalogue.ts'
import type { LocationType } from '../catalogue/location.ts'
import { withoutKeys } from '../key-redaction.ts'
import { detailOf, listOf } from './bodies.ts'
import { lastingText } from './lasting.ts'
import { locationTypeOf, type Query, queryOf, searchTextOf, wholeNumberOf } from './parameters.ts'
import { type CurrentCatalogue, findLocation } from './places.ts'
import { type Forms, type Representation, tagOf } from './representation.ts'
import type { Answer } from './routes.ts'

// Places change when an operator swaps the catalogue; a minute is how long a consumer may not have heard of it.
const metadataHeaders = 'cache-control: private, max-age=60\r\n'

const parentParameters: Readonly<Partial<Record<LocationType, keyof Query<ListParameter>>>> = {
  district: 'division_id',
  upazila: 'district_id',
  union: 'upazila_id',
}
const listParameters = ['type', 'division_id', 'district_id', 'upazila_id', 'q', 'limit', 'offset'] as const
type ListParameter = (typeof listParameters)[number]

// What a kept body takes beside its bytes, roughly.
const objectBytes = 600

/** @param keepBytes what the bodies that are kept may take */
export const createLocationRoutes = (current: CurrentCatalogue, keepBytes: number) => {
  const kept = new LRUCache<string, Representation>({
    maxSize: keepBytes,
    sizeCalculation: ({ pieces: [bytes] }, name) => bytes.length + name.length + objectBytes,
  })
  let of: Catalogue | undefined

  const rendered = (
    name: string,
    catalogue: Catalogue,
    render: () => { body: object; link?: string },
  ): Representation => {
    if (of !== catalogue) {
      kept.clear()
      of = catalogue
    }
    const found = kept.get(name)
    if (found) return found
    const { body, link } = render()
    const bytes = lastingText(JSON.stringify(body))
    const forms: Forms = {}
    let formBytes = 0
    const representation: Representation = {
      tag: tagOf(bytes),
      headers: link ? `${metadataHeaders}link: ${link}\r\n` : metadataHeaders,
      pieces: [bytes],
      ready: {},
      forms: () => forms,
      made: form => {
        formBytes += form.length
        if (kept.peek(name) === representation)
          kept.set(name, representation, { size: bytes.length + name.length + objectBytes + formBytes })
      },
    }
    kept.set(name, representation)
    return representation
  }

  const list: Answer = url => {
    const query = queryOf(url, listParameters)
    const type = locationTypeOf(query.type)
    const parent = parentParameters[type]
    const limit = wholeNumberOf('limit', query.limit, { min: 1, max: 100, fallback: 50 })
    const offset = wholeNumberOf('offset', query.offset, { min: 0, max: 1_000_000_000, fallback: 0 })
    const q = searchTextOf(query.q)

    const parentId = parent && query[parent]

    const catalogue = current()
    // What was understood, and nothing else of the query: what is ignored makes no body of its own and is not repeated.
    const understood: Understood = {
      type,
      ...(parent && parentId !== undefined ? { [parent]: parentId } : {}),
      ...(q === '' ? {} : { q }),
    }
    return rendered(JSON.stringify([understood, limit, offset]), catalogue, () => {
      const page = catalogue.list({ type, parentId, q, limit, offset })
      return {
        body: listOf(page, type, catalogue),
        link: linksOf(understood, page, limit, offset),
      }
    })
  }

  const detail: Answer = (_url, type, id) => {
    const catalogue = current()
    const location = findLocation(catalogue, type, id)
    return rendered(location.id, catalogue, () => ({ body: { location: detailOf(location, catalogue) } }))
  }

  return { list, detail }
}

type Understood = Query<Exclude<ListParameter, 'limit' | 'offset'>>

// Bounded, since there are other pages only where a list has matches, whose parents and texts are short.
const linksOf = (understood: Understood, { total }: ListPage, limit: number, offset: number): string => {
  const linkTo = (rel: string, to: number, size: number) => {
    const parameters = new URLSearchParams({ ...understood, limit: String(size), offset: String(to) })
    for (const [name, value] of parameters) parameters.set(name, withoutKeys(value))
    return `</api/v1/locations?${parameters}>; rel="${rel}"`
  }
  // The page before ends where this one begins, or at the last match when this one lies beyond it.
  const end = Math.min(offset, total)
  const start = Math.max(0, end - limit)
  const next = offset + limit < total ? [linkTo('next', offset + limit, limit)] : []
  const prev = end > 0 ? [linkTo('prev', start, end - start)] : []
  return [...next, ...prev].join(', ')
}
