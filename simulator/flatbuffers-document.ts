// Formats a document as the FlatBuffers messages that the provider's own clients request, each with its size in front. The
// SDK has the codes but only reads, so this file lists the slots of its tables. Imported on demand. Needs Unix seconds.

import { Aggregation } from '@openmeteo/sdk/aggregation.js'
import { Model } from '@openmeteo/sdk/model.js'
import { Unit } from '@openmeteo/sdk/unit.js'
import { Variable } from '@openmeteo/sdk/variable.js'
import { Builder } from 'flatbuffers'
import { type Element, type ForecastDocument, fieldOf, type Section } from './document.ts'
import { currentName } from './variables.ts'

type Column = Section['columns'][number]

// Where the SDK's tables keep their fields, by the order in its schema.
const responseSlots = {
  latitude: 0,
  longitude: 1,
  elevation: 2,
  generationTime: 3,
  locationId: 4,
  model: 5,
  utcOffset: 6,
  timezone: 7,
  abbreviation: 8,
  current: 9,
  daily: 10,
  hourly: 11,
  minutely_15: 12,
  count: 15,
} as const
const sectionSlots = { time: 0, timeEnd: 1, interval: 2, variables: 3, count: 4 } as const
const variableSlots = {
  variable: 0,
  unit: 1,
  value: 2,
  values: 3,
  integers: 4,
  altitude: 5,
  aggregation: 6,
  depth: 8,
  depthTo: 9,
  count: 13,
} as const

const stepSeconds: Readonly<Record<string, number>> = {
  current: 900,
  minutely_15: 900,
  hourly: 3600,
  daily: 86_400,
}

const unitCodes: Readonly<Record<string, Unit>> = {
  '°C': Unit.celsius,
  '°F': Unit.fahrenheit,
  'km/h': Unit.kilometres_per_hour,
  'm/s': Unit.metre_per_second,
  'mp/h': Unit.miles_per_hour,
  kn: Unit.knots,
  mm: Unit.millimetre,
  cm: Unit.centimetre,
  inch: Unit.inch,
  m: Unit.metre,
  ft: Unit.feet,
  '%': Unit.percentage,
  '°': Unit.degree_direction,
  hPa: Unit.hectopascal,
  kPa: Unit.kilopascal,
  'wmo code': Unit.wmo_code,
  '': Unit.dimensionless,
  'W/m²': Unit.watt_per_square_metre,
  'MJ/m²': Unit.megajoule_per_square_metre,
  s: Unit.seconds,
  h: Unit.hours,
  'm³/m³': Unit.cubic_metre_per_cubic_metre,
  'J/kg': Unit.joule_per_kilogram,
  'kg/m²': Unit.kilogram_per_square_metre,
  unixtime: Unit.unix_time,
}

/** The messages of all elements. */
export const writeFlatBuffers = ({ elements }: ForecastDocument): Uint8Array =>
  Buffer.concat(elements.map(writeElement))

const writeElement = (element: Element): Uint8Array => {
  const builder = new Builder(4096)
  const sections = element.sections.map(section => [section.name, writeSection(builder, section)] as const)
  const text = (name: string): number => builder.createString(textOf(fieldOf(element, name) ?? '""'))
  const timezone = text('timezone')
  const abbreviation = text('timezone_abbreviation')
  const float = (slot: number, name: string): void =>
    builder.addFieldFloat32(slot, numberOf(fieldOf(element, name)), 0)
  builder.startObject(responseSlots.count)
  float(responseSlots.latitude, 'latitude')
  float(responseSlots.longitude, 'longitude')
  float(responseSlots.elevation, 'elevation')
  float(responseSlots.generationTime, 'generationtime_ms')
  builder.addFieldInt64(responseSlots.locationId, BigInt(fieldOf(element, 'location_id') ?? 0), 0n)
  builder.addFieldInt8(responseSlots.model, Model.best_match, 0)
  builder.addFieldInt32(responseSlots.utcOffset, numberOf(fieldOf(element, 'utc_offset_seconds')), 0)
  builder.addFieldOffset(responseSlots.timezone, timezone, 0)
  builder.addFieldOffset(responseSlots.abbreviation, abbreviation, 0)
  for (const [name, offset] of sections)
    builder.addFieldOffset(responseSlots[name as 'current' | 'daily' | 'hourly' | 'minutely_15'], offset, 0)
  builder.finishSizePrefixed(builder.endObject())
  return builder.asUint8Array()
}

const writeSection = (builder: Builder, section: Section): number => {
  const single = section.interval !== undefined
  const daily = section.name === 'daily'
  const variables = section.columns.map(column => writeVariable(builder, column, single, daily))
  builder.startVector(4, variables.length, 4)
  // A vector is written from its end.
  for (const offset of variables.toReversed()) builder.addOffset(offset)
  const vector = builder.endVector()
  const step = stepSeconds[section.name] ?? 0
  const start = Number(section.times[0] ?? 0)
  builder.startObject(sectionSlots.count)
  builder.addFieldInt64(sectionSlots.time, BigInt(start), 0n)
  builder.addFieldInt64(sectionSlots.timeEnd, BigInt(start + step * section.times.length), 0n)
  builder.addFieldInt32(sectionSlots.interval, step, 0)
  builder.addFieldOffset(sectionSlots.variables, vector, 0)
  return builder.endObject()
}

const writeVariable = (builder: Builder, column: Column, single: boolean, daily: boolean): number => {
  const instants = column.unit === 'unixtime'
  const vector = single ? 0 : instants ? writeIntegers(builder, column) : writeFloats(builder, column)
  const { variable, aggregation, altitude, depth, depthTo } = codesOf(column.name, daily)
  builder.startObject(variableSlots.count)
  builder.addFieldInt8(variableSlots.variable, variable, 0)
  builder.addFieldInt8(variableSlots.unit, unitOf(column), 0)
  if (single) builder.addFieldFloat32(variableSlots.value, numberOf(column.values[0]), 0)
  builder.addFieldOffset(instants ? variableSlots.integers : variableSlots.values, vector, 0)
  builder.addFieldInt16(variableSlots.altitude, altitude, 0)
  builder.addFieldInt8(variableSlots.aggregation, aggregation, 0)
  builder.addFieldInt16(variableSlots.depth, depth, 0)
  builder.addFieldInt16(variableSlots.depthTo, depthTo, 0)
  return builder.endObject()
}

const writeFloats = (builder: Builder, { values }: Column): number => {
  builder.startVector(4, values.length, 4)
  for (const value of values.toReversed()) builder.addFloat32(numberOf(value))
  return builder.endVector()
}

const writeIntegers = (builder: Builder, { values }: Column): number => {
  builder.startVector(8, values.length, 8)
  // 0 stands for a missing instant, because the column has no other number for it.
  for (const value of values.toReversed()) builder.addInt64(BigInt(value === 'null' ? 0 : value))
  return builder.endVector()
}

const aggregations: Readonly<Record<string, Aggregation>> = {
  max: Aggregation.maximum,
  min: Aggregation.minimum,
  mean: Aggregation.mean,
  sum: Aggregation.sum,
  dominant: Aggregation.dominant,
}

// "temperature_2m_max" is the maximum of temperature at 2 m; "soil_moisture_3_to_9cm" soil moisture from 3 to 9 cm deep.
const codesOf = (requested: string, daily: boolean) => {
  const name = currentName(requested)
  const [, whole = name, aggregated = ''] =
    (daily ? /^(.+)_(max|min|mean|sum|dominant)$/.exec(name) : null) ?? []
  const [, base = whole, from = '0', , to = '0', unit = ''] =
    /^(.+?)_(\d+)(_to_(\d+))?(m|cm)$/.exec(whole) ?? []
  const deep = unit === 'cm'
  return {
    variable: Variable[base as keyof typeof Variable] ?? Variable.undefined,
    aggregation: aggregations[aggregated] ?? Aggregation.none,
    altitude: base === 'apparent_temperature' ? 2 : deep ? 0 : Number(from),
    depth: deep ? Number(from) : 0,
    depthTo: Number(to),
  }
}

const unitOf = ({ name, unit }: Column): Unit =>
  name === 'is_day' ? Unit.dimensionless_integer : (unitCodes[unit] ?? Unit.undefined)

// Values are JSON; NaN stands for a missing one.
const numberOf = (json: string | undefined): number =>
  json === undefined || json === 'null' ? Number.NaN : Number(json)

const textOf = (json: string): string => String(JSON.parse(json))
