// A simulated provider in the process of a test, on a real port, with short functions to send requests and to steer it.

import { type SimulatorOptions, startSimulator } from '../../../tools/provider/simulator.ts'
import type { Teardown } from '../../support/teardown.ts'

export type Answer = {
  status: number
  headers: Headers
  text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  body: any
}

const noon = '2026-11-21T06:00:00Z'

export const allInstant =
  'temperature_2m,relative_humidity_2m,apparent_temperature,is_day,precipitation,rain,showers,snowfall,weather_code,' +
  'cloud_cover,pressure_msl,surface_pressure,wind_speed_10m,wind_direction_10m,wind_gusts_10m'
export const allHourly = `${allInstant},precipitation_probability`
export const allDaily =
  'weather_code,temperature_2m_max,temperature_2m_min,precipitation_probability_max,precipitation_sum,sunrise,sunset'

const places = {
  dhaka: 'latitude=23.8103&longitude=90.4125',
  three: 'latitude=23.8103,22.3569,24.8949&longitude=90.4125,91.7832,91.8687',
}

/** The path of a forecast for Dhaka in local time, with the test's parameters. */
export const dhaka = (rest: string): string => `/v1/forecast?${places.dhaka}&timezone=Asia%2FDhaka&${rest}`

/** The same for Dhaka, Chattogram and Sylhet. */
export const three = (rest: string): string => `/v1/forecast?${places.three}&timezone=Asia%2FDhaka&${rest}`

/** Its clock stands at noon of a November day by default. */
export const simulate = async (t: Teardown, options: SimulatorOptions = {}, now: string | null = noon) => {
  const simulator = await startSimulator(options)
  t.teardown(() => simulator.close())
  const send = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(simulator.url + path, init)
    const text = await response.text()
    return { status: response.status, headers: response.headers, text, body: parsed(text) }
  }
  const steer = (change: Record<string, unknown>): Promise<Answer> =>
    send('/control', { method: 'POST', body: JSON.stringify(change) })
  if (now !== null) await steer({ now })
  return { ...simulator, send, steer, state: async () => (await send('/control')).body }
}

/** The text of a response without the fields that differ every time. */
export const withoutTimings = (text: string): string => text.replaceAll(/"generationtime_ms":[^,]+,/g, '')

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
