// Computes the document of a forecast request: for each point, in the order of the request, the header fields and the
// sections. Yields to the event loop, so that a long list does not block other calls.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Element, ForecastDocument } from './document.ts'
import { printFloat } from './fixed-decimals.ts'
import type { ForecastRequest } from './forecast-request.ts'
import { modelCellOf, spell32 } from './model-cell.ts'
import type { Point } from './points.ts'
import { type Moment, sectionsFor } from './sections.ts'
import { broadHeight, groundHeight } from './terrain.ts'
import { createTimePrinter, type TimePrinter } from './time-axis.ts'
import { zoneAt } from './zones.ts'

const pointsPerTurn = 25

/** The response to a request at an instant. */
export const forecast = async (request: ForecastRequest, moment: Moment): Promise<ForecastDocument> => {
  const printer = createTimePrinter(request.timeformat)
  const elements: Element[] = []
  for (const [index, point] of request.points.entries()) {
    if (index > 0 && index % pointsPerTurn === 0) await nextTurn()
    elements.push(elementFor(point, point.locationId ?? index, request, moment, printer))
  }
  return { elements, list: elements.length > 1 }
}

const elementFor = (
  point: Point,
  locationId: number,
  request: ForecastRequest,
  moment: Moment,
  printer: TimePrinter,
): Element => {
  const started = performance.now()
  const zone = zoneAt(point.zone, moment.now)
  const offsetSeconds = request.offsetSeconds ?? zone.offsetSeconds
  const cell = modelCellOf(point)
  const cellHeight = Math.round(broadHeight(cell))
  const elevation = point.elevation ?? groundHeight(point)
  const site = { cell, cellHeight, height: Number.isNaN(elevation) ? cellHeight : elevation }
  const sections = sectionsFor(request, moment, site, offsetSeconds * 1000, printer)
  return {
    fields: [
      ['latitude', spell32(cell.latitude)],
      ['longitude', spell32(cell.longitude)],
      ['generationtime_ms', printFloat(performance.now() - started)],
      ['utc_offset_seconds', String(offsetSeconds)],
      ['timezone', JSON.stringify(zone.name)],
      ['timezone_abbreviation', JSON.stringify(zone.abbreviation)],
      ...(Number.isNaN(elevation) ? [] : [['elevation', spell32(elevation)] as const]),
      ...(locationId === 0 ? [] : [['location_id', String(locationId)] as const]),
    ],
    sections,
  }
}
