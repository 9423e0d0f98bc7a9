// GET /locations: a page of the published places under a type, with links to the pages before and after.

import type { ListPage } from '../../catalogue/catalogue.ts'
import type { LocationType } from '../../catalogue/location.ts'
import { withoutKeys } from '../../key-redaction.ts'
import { listOf } from '../bodies.ts'
import { apiPrefix, type Endpoint } from '../endpoint.ts'
import { locationTypeOf, type Query, queryOf, searchTextOf, wholeNumberOf } from '../parameters.ts'
import type { CurrentCatalogue } from '../places.ts'
import type { RenderedLocations } from '../rendered-locations.ts'

const parentParameters: Readonly<Partial<Record<LocationType, keyof Query<ListParameter>>>> = {
  district: 'division_id',
  upazila: 'district_id',
  union: 'upazila_id',
}
const listParameters = ['type', 'division_id', 'district_id', 'upazila_id', 'q', 'limit', 'offset'] as const
type ListParameter = (typeof listParameters)[number]

export const locationsEndpoint = (served: CurrentCatalogue, rendered: RenderedLocations): Endpoint => ({
  name: 'locations',
  path: '/locations',
  answer: ({ query: given }) => {
    const query = queryOf(given, listParameters)
    const type = locationTypeOf(query.type)
    const parent = parentParameters[type]
    const limit = wholeNumberOf('limit', query.limit, { min: 1, max: 100, fallback: 50 })
    const offset = wholeNumberOf('offset', query.offset, { min: 0, max: 1_000_000_000, fallback: 0 })
    const q = searchTextOf(query.q)

    const parentId = parent && query[parent]

    const catalogue = served.current
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
  },
})

type Understood = Query<Exclude<ListParameter, 'limit' | 'offset'>>

// Bounded, since there are other pages only where a list has matches, whose parents and texts are short.
const linksOf = (understood: Understood, { total }: ListPage, limit: number, offset: number): string => {
  const linkTo = (rel: string, to: number, size: number) => {
    const parameters = new URLSearchParams({ ...understood, limit: String(size), offset: String(to) })
    for (const [name, value] of parameters) parameters.set(name, withoutKeys(value))
    return `<${apiPrefix}/locations?${parameters}>; rel="${rel}"`
  }
  // The page before ends where this one begins, or at the last match when this one lies beyond it.
  const end = Math.min(offset, total)
  const start = Math.max(0, end - limit)
  const next = offset + limit < total ? [linkTo('next', offset + limit, limit)] : []
  const prev = end > 0 ? [linkTo('prev', start, end - start)] : []
  return [...next, ...prev].join(', ')
}
