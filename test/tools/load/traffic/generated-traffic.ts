// Traffic that is generated in this process from the catalogue of the product, with settings of which a test changes some.

import type { Catalogue } from '../../../../src/catalogue/catalogue.ts'
import { readCatalogue } from '../../../../src/catalogue/live-catalogue.ts'
import { createCalendar, hourMs } from '../../../../src/common/calendar.ts'
import { type EndpointName, endpointNames } from '../../../../src/common/endpoints.ts'
import {
  type GeneratedTraffic,
  generate,
  type World,
} from '../../../../tools/load/traffic/generate/generate.ts'
import type { TrafficRequest } from '../../../../tools/load/traffic/traffic-request.ts'

const bounds = { south: 20, north: 27, west: 87.5, east: 93 }
export const productCatalogue: Catalogue = await readCatalogue(null)

/** Midnight in Dhaka. */
export const start = Date.parse('2026-11-15T18:00Z')

/** A mix that has nothing yet. */
export const noEndpoints = Object.fromEntries(endpointNames.map(name => [name, 0])) as Record<
  EndpointName,
  number
>

export const usualSettings: GeneratedTraffic = {
  ...{ seed: 1, start, durationMs: 24 * hourMs, rate: 0.25 },
  ...{ arrivals: 'poisson', shape: 'day', storms: [] },
  mix: { ...noEndpoints, weather: 70, forecast: 20, coords: 6, locations: 2, location: 2 },
  ...{ alpha: 1, keys: 60, keysAlpha: 0.8, english: 0.3, conditional: 0.1, compressed: 0.75, bad: 0.01 },
}

export const productWorld: World = {
  catalogue: productCatalogue,
  bounds,
  offsetSecondsAt: createCalendar('Asia/Dhaka').offsetSecondsAt,
}

export const generated = (settings: Partial<GeneratedTraffic>): TrafficRequest[] => [
  ...generate({ ...usualSettings, ...settings }, productWorld),
]
