// The API's endpoints by name. Routes, metrics, usage, reference, traffic and thresholds derive from this table, so that the compiler
// finds what a new endpoint lacks.

export const apiPrefix = '/api/v1'

/** The default origin of the gateway, in the written reference. Served pages have `server.publicUrl` or their own address instead. */
export const sampleOrigin = 'http://127.0.0.1:8080'

/**
 * Paths are below the prefix, as the router writes them. `hasWeather`: answered from the cache of weather. `list`: the parameter
 * with a list of places, without which there is nothing at the path.
 */
export const endpoints = {
  weather: { path: '/weather/:type/:id', hasWeather: true },
  forecast: { path: '/forecast/:type/:id', hasWeather: true },
  coords: { path: '/weather/coords/:lat/:lng', hasWeather: true },
  weather_places: { path: '/weather', hasWeather: true, list: 'places' },
  forecast_places: { path: '/forecast', hasWeather: true, list: 'places' },
  locations: { path: '/locations', hasWeather: false },
  location: { path: '/locations/:type/:id', hasWeather: false },
} as const

export type EndpointName = keyof typeof endpoints

/** The endpoints that answer with weather. */
export type WeatherEndpoint = {
  [Name in EndpointName]: (typeof endpoints)[Name]['hasWeather'] extends true ? Name : never
}[EndpointName]

export const endpointNames = Object.keys(endpoints) as readonly EndpointName[]

/** The endpoints that answer for a list of places. */
export type ListEndpoint = {
  [Name in EndpointName]: (typeof endpoints)[Name] extends { list: string } ? Name : never
}[EndpointName]

/** The endpoint of a path, or `other` for none. */
export type Destination = EndpointName | 'other'

export const destinations: readonly Destination[] = [...endpointNames, 'other']

/** The path of `GET /key`: no endpoint, because it takes no unit and is no traffic. */
export const keyPath = '/key'

/** What answers a key with 200. */
export type AnswerName = EndpointName | 'key'

/** The name of a response in log, metrics, traces and usage; the pages of the API reference share one. */
export type ResponseName = Destination | 'reference' | 'key'

export const hasWeather = (name: ResponseName): name is WeatherEndpoint =>
  Object.hasOwn(endpoints, name) && endpoints[name as EndpointName].hasWeather

/** The endpoint's name if it answers for a list of places. */
export const isList = (name: EndpointName): name is ListEndpoint => 'list' in endpoints[name]

/** The path as people and OpenAPI write it, below the prefix. */
export const templateOf = (name: EndpointName): string => endpoints[name].path.replaceAll(/:(\w+)/g, '{$1}')
