// Quantities and their units: conversion from the weather's own units, decimals, and the provider's name of the unit. Pure.

import { currentUnits } from '../src/weather/weather-variables.ts'

/** A unit: its name in the response, digits after the point, and the conversion from °C, km/h, mm, cm and m. */
export type Unit = {
  readonly name: string
  readonly decimals: number
  readonly from: (value: number) => number
}

/** A measured quantity, without its unit. */
export type Quantity = keyof ReturnType<typeof unitsFor>

const unit = (name: string, decimals: number, from: Unit['from'] = value => value): Unit => ({
  name,
  decimals,
  from,
})

/** The units that a request may choose, by parameter; the first of each is the default. */
export const unitChoices = {
  temperature_unit: {
    celsius: unit(currentUnits.temperature_2m, 1),
    fahrenheit: unit('°F', 1, celsius => celsius * 1.8 + 32),
  },
  wind_speed_unit: {
    kmh: unit(currentUnits.wind_speed_10m, 1),
    ms: unit('m/s', 2, kmh => kmh / 3.6),
    mph: unit('mp/h', 1, kmh => kmh / 1.609344),
    kn: unit('kn', 1, kmh => kmh / 1.852),
  },
  precipitation_unit: {
    mm: { rain: unit(currentUnits.rain, 2), snow: unit(currentUnits.snowfall, 2), length: unit('m', 2) },
    inch: {
      rain: unit('inch', 3, mm => mm / 25.4),
      snow: unit('inch', 3, cm => cm / 2.54),
      length: unit('ft', 3, metres => metres / 0.3048),
    },
  },
} as const

/** The units a request chose, by parameter. */
export type UnitChoice = {
  readonly temperature_unit: keyof typeof unitChoices.temperature_unit
  readonly wind_speed_unit: keyof typeof unitChoices.wind_speed_unit
  readonly precipitation_unit: keyof typeof unitChoices.precipitation_unit
}

/** The unit of every quantity for one request. Instants use the time format of the request. */
export const unitsFor = (choice: UnitChoice, timeformat: string) => ({
  temperature: unitChoices.temperature_unit[choice.temperature_unit] as Unit,
  speed: unitChoices.wind_speed_unit[choice.wind_speed_unit] as Unit,
  rain: unitChoices.precipitation_unit[choice.precipitation_unit].rain as Unit,
  snow: unitChoices.precipitation_unit[choice.precipitation_unit].snow as Unit,
  length: unitChoices.precipitation_unit[choice.precipitation_unit].length as Unit,
  percent: unit(currentUnits.relative_humidity_2m, 0),
  // 360 degrees is printed as 0, which is north too.
  direction: unit(currentUnits.wind_direction_10m, 0, degrees => Math.round(degrees) % 360),
  pressure: unit(currentUnits.surface_pressure, 1),
  code: unit(currentUnits.weather_code, 0),
  flag: unit(currentUnits.is_day, 0),
  index: unit('', 2),
  deficit: unit('kPa', 2),
  radiation: unit('W/m²', 1),
  radiationSum: unit('MJ/m²', 2),
  duration: unit('s', 2),
  hours: unit('h', 1),
  soilMoisture: unit('m³/m³', 3),
  energy: unit('J/kg', 1),
  column: unit('kg/m²', 2),
  instant: unit(timeformat, 0),
  missing: unit('undefined', 0),
})
