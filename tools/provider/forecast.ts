// Computes the document of a forecast request, point by point. Yields to the event loop, so that a long list does not block other calls.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Element, ForecastDocument } from './document.ts'
import { printFloat } from './fixed-decimals.ts'
import type { ForecastRequest } from './forecast-request.ts'
import { modelCellOf, spell32 } from './model-cell.ts'
import type { Place } from './points.ts'
import { type Moment, sectionsFor } from './sections.ts'
import { broadHeight, groundHeight } from './terrain.ts'
import { createTimePrinter, type TimePrinter } from './time-axis.ts'

const pointsPerTurn = 25

export const forecast = async (request: ForecastRequest, moment: Moment): Promise<ForecastDocument> => {
  const printer = createTimePrinter()
  const elements: Element[] = []
  for (const [index, point] of request.points.entries()) {
    if (index > 0 && index % pointsPerTurn === 0) await nextTurn()
    elements.push(elementFor(point, index, request, moment, printer))
  }
  return { elements, list: elements.length > 1 }
}

const elementFor = (
  point: Place,
  index: number,
  request: ForecastRequest,
  moment: Moment,
  printer: TimePrinter,
): Element => {
  const started = performance.now()
  const zone = request.zone.at(moment.now)
  const offsetSeconds = request.offsetSeconds ?? zone.offsetSeconds
  const cell = modelCellOf(point)
  const height = groundHeight(point)
  const site = { cell, cellHeight: Math.round(broadHeight(cell)), height }
  const sections = sectionsFor(request, moment, site, offsetSeconds * 1000, printer)
  return {
    fields: [
      ['latitude', spell32(cell.latitude)],
      ['longitude', spell32(cell.longitude)],
      ['generationtime_ms', printFloat(performance.now() - started)],
      ['utc_offset_seconds', String(offsetSeconds)],
      ['timezone', JSON.stringify(request.zone.name)],
      ['timezone_abbreviation', JSON.stringify(zone.abbreviation)],
      ['elevation', spell32(height)],
      ...(index === 0 ? [] : [['location_id', String(index)] as const]),
    ],
    sections,
  }
}
