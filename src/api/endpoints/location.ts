// GET /locations/{type}/{id}: a published place, without weather.

import type { Endpoint } from '../endpoint.ts'
import { identifier, locationType } from '../parameters.ts'
import { type CurrentCatalogue, findLocation } from '../places.ts'
import type { RenderedLocations } from '../rendered-locations.ts'
import { detailOf } from '../response-bodies.ts'

export const locationParameters = { path: { type: locationType, id: identifier }, query: {} } as const

export const locationEndpoint =
  (served: CurrentCatalogue, rendered: RenderedLocations): Endpoint =>
  ({ params: { type = '', id = '' } }) => {
    const catalogue = served.current
    const location = findLocation(catalogue, type, id)
    return rendered(location.id, catalogue, () => ({ body: { location: detailOf(location, catalogue) } }))
  }
