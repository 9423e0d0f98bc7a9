// GET /locations and /locations/{type}/{id}: places without weather.

import type { FastifyInstance } from 'fastify'
import type { Catalogue, ListPage } from '../catalogue/catalogue.ts'
import type { Location, LocationType } from '../catalogue/location.ts'
import { detailOf, listItemOf } from './bodies.ts'
import { locationTypeOf, type Query, queryOf, searchTextOf, wholeNumberOf } from './parameters.ts'
import { notFound, quoted } from './problem.ts'
import { sendJson } from './representation.ts'

/** The catalogue that is in force now; it may be swapped between two requests. */
export type CurrentCatalogue = () => Catalogue

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
  app.get('/api/v1/locations', { config: { endpoint: 'locations' } }, async (request, reply) => {
    const query = queryOf(request.raw.url ?? '', listParameters)
    const type = locationTypeOf(query.type)
    const parent = parentParameters[type]
    const limit = wholeNumberOf('limit', query.limit, { min: 1, max: 100, fallback: 50 })
    const offset = wholeNumberOf('offset', query.offset, { min: 0, fallback: 0 })
    const q = searchTextOf(query.q)

    const places = catalogue()
    const page = places.list({ type, parentId: parent && query[parent], q, limit, offset })
    const body = { results: page.results.map(place => listItemOf(place, places)), total: page.total, type }
    const link = linksOf(query, page, limit, offset)
    return sendJson(request, reply, body, { ...metadataHeaders, ...(link ? { link } : {}) })
  })

  app.get<{ Params: { type: string; id: string } }>(
    '/api/v1/locations/:type/:id',
    { config: { endpoint: 'location' } },
    async (request, reply) => {
      const places = catalogue()
      const location = findLocation(places, request.params.type, request.params.id)
      return sendJson(request, reply, { location: detailOf(location, places) }, metadataHeaders)
    },
  )
}

/** The published place of a path. @throws Problem 400 for a wrong type, 404 for no such place */
export const findLocation = (catalogue: Catalogue, type: string, id: string): Location => {
  const wanted = locationTypeOf(type)
  const location = catalogue.find(wanted, id)
  if (!location) throw notFound(`the ${wanted} ${quoted(id)} was not found or is not published`)
  return location
}

const linksOf = (query: Query<ListParameter>, { total }: ListPage, limit: number, offset: number): string => {
  const linkTo = (rel: string, to: number) => {
    const parameters = new URLSearchParams({ ...query, limit: String(limit), offset: String(to) })
    return `</api/v1/locations?${parameters}>; rel="${rel}"`
  }
  const next = offset + limit < total ? [linkTo('next', offset + limit)] : []
  const prev = offset > 0 ? [linkTo('prev', Math.max(0, offset - limit))] : []
  return [...next, ...prev].join(', ')
}
