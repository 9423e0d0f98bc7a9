// GET /locations: a page of the published places under a type, with links to the pages before and after.

import type { ListPage } from '../../catalogue/catalogue.ts'
import type { LocationType } from '../../catalogue/location-schema.ts'
import { withoutKeys } from '../../common/key-redaction.ts'
import type { Endpoint } from '../endpoint.ts'
import {
  locationType,
  optionalIdentifier,
  type Query,
  queryOf,
  searchText,
  wholeNumber,
} from '../parameters.ts'
import type { CurrentCatalogue } from '../places.ts'
import type { RenderedLocations } from '../rendered-locations.ts'
import { listOf } from '../response-bodies.ts'

export const locationsParameters = {
  path: {},
  query: {
    type: locationType,
    division_id: optionalIdentifier,
    district_id: optionalIdentifier,
    upazila_id: optionalIdentifier,
    q: searchText,
    limit: wholeNumber('limit', { min: 1, max: 100, fallback: 50 }),
    offset: wholeNumber('offset', { min: 0, max: 1_000_000_000, fallback: 0 }),
  },
} as const
const wanted = locationsParameters.query
type ListParameter = keyof typeof wanted

const parentParameters: Readonly<Partial<Record<LocationType, keyof Query<ListParameter>>>> = {
  district: 'division_id',
  upazila: 'district_id',
  union: 'upazila_id',
}

export const locationsEndpoint =
  (served: CurrentCatalogue, rendered: RenderedLocations): Endpoint =>
  ({ query: given }) => {
    const query = queryOf(given, wanted)
    const type = locationType.read(query.type)
    const parent = parentParameters[type]
    const limit = wanted.limit.read(query.limit)
    const offset = wanted.offset.read(query.offset)
    const q = searchText.read(query.q)

    const parentId = parent && optionalIdentifier.read(query[parent])

    const catalogue = served.current
    // The parsed query alone: ignored parameters make no body of their own and are not repeated.
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
