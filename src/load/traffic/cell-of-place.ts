// The cell of a request that was recorded without one, by the catalogue and the grid of the gateway: the cell from which a
// gateway with these settings would answer it.

import type { Catalogue } from '../../catalogue/catalogue.ts'
import { type Bounds, isLocationType } from '../../catalogue/location-schema.ts'
import { hasWeather } from '../../common/endpoints.ts'
import type { Grid } from '../../weather/cell.ts'
import { endpointOf, placeOf } from './endpoint-of-path.ts'
import type { TrafficRequest } from './traffic-request.ts'

/** Undefined where the request is not answered with weather. */
export type CellOf = (request: Pick<TrafficRequest, 'cell' | 'path'>) => string | undefined

/** The recorded cell, for use without a catalogue. */
export const recordedCell: CellOf = ({ cell }) => cell

export const createCellOf = (catalogue: Catalogue, bounds: Bounds, grid: Grid): CellOf => {
  const { south, north, west, east } = bounds
  const cellAt = (place: string): string | undefined => {
    const [, latitude, longitude] =
      /^(-?\d{1,3}(?:\.\d{1,20})?),(-?\d{1,3}(?:\.\d{1,20})?)$/.exec(place) ?? []
    if (latitude !== undefined && longitude !== undefined) {
      const [lat, lng] = [Number(latitude), Number(longitude)]
      return lat >= south && lat <= north && lng >= west && lng <= east ? grid.cellOf(lat, lng).id : undefined
    }
    const [type = '', id = ''] = place.split('/')
    const location = isLocationType(type) ? catalogue.find(type, id) : undefined
    return location && grid.cellOf(location.latitude, location.longitude).id
  }
  return ({ cell, path }) => cell ?? (hasWeather(endpointOf(path)) ? cellAt(placeOf(path)) : undefined)
}
