// GET /locations and /locations/{type}/{id}: places without weather.

import type { FastifyInstance } from 'fastify'
import type { ListPage } from '../catalogue/catalogue.ts'
import type { LocationType } from '../catalogue/location.ts'
import { detailOf, listItemOf } from './bodies.ts'
import { locationTypeOf, type Query, queryOf, searchTextOf, wholeNumberOf } from './parameters.ts'
import { type CurrentCatalogue, findPlace } from './place.ts'
import { sendJson } from './representation.ts'

// Places change when an operator swaps the catalogue; a minute is how long a consumer may not have heard of it.
const metadataHeaders = { 'cache-control': 'private, max-age=60' }

const parentParameters: Readonly<Partial<Record<LocationType, keyof Query<ListParameter>>>> = {
  district: 'division_id',
  upazila: 'district_id',
  union: 'upazila_id',
}
const listParameters = ['type', 'division_id', 'district_id', 'upazila_id', 'q', 'limit', 'offset'] as const
type ListParameter = (typeof listParameters)[number]

export const registerLocationRoutes = (app: FastifyInstance, catalogue: CurrentCatalogue): void => {
  app.route({
    method: ['GET', 'HEAD'],
    url: '/api/v1/locations',
    config: { endpoint: 'locations' },
    handler: async (request, reply) => {
      const query = queryOf(request.raw.url ?? '', listParameters)
      const type = locationTypeOf(query.type)
      const parent = parentParameters[type]
      const limit = wholeNumberOf('limit', query.limit, { min: 1, max: 100, fallback: 50 })
      const offset = wholeNumberOf('offset', query.offset, { min: 0, max: 1_000_000_000, fallback: 0 })
      const q = searchTextOf(query.q)

      const places = catalogue()
      const page = places.list({ type, parentId: parent && query[parent], q, limit, offset })
      const body = { results: page.results.map(place => listItemOf(place, places)), total: page.total, type }
      const link = linksOf(query, page, limit, offset)
      return sendJson(request, reply, body, { ...metadataHeaders, ...(link ? { link } : {}) })
    },
  })

  app.route<{ Params: { type: string; id: string } }>({
    method: ['GET', 'HEAD'],
    url: '/api/v1/locations/:type/:id',
    config: { endpoint: 'location' },
    handler: async (request, reply) => {
      const places = catalogue()
      const location = findPlace(places, request.params.type, request.params.id)
      return sendJson(request, reply, { location: detailOf(location, places) }, metadataHeaders)
    },
  })
}

const linksOf = (query: Query<ListParameter>, { total }: ListPage, limit: number, offset: number): string => {
  const linkTo = (rel: string, to: number, size: number) => {
    const parameters = new URLSearchParams({ ...query, limit: String(size), offset: String(to) })
    return `</api/v1/locations?${parameters}>; rel="${rel}"`
  }
  // The page before ends where this one begins, or at the last match when this one lies beyond it.
  const end = Math.min(offset, total)
  const start = Math.max(0, end - limit)
  const next = offset + limit < total ? [linkTo('next', offset + limit, limit)] : []
  const prev = end > 0 ? [linkTo('prev', start, end - start)] : []
  return [...next, ...prev].join(', ')
}
