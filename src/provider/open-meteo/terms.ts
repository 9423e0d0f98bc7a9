// The terms of the service that speaks this protocol: its name and its licence, for people who read them in the API
// reference. What a request has to keep to is in limits.ts.

export const serviceName = 'Open-Meteo'

export const serviceUrl = 'https://api.open-meteo.com'

/** Of the weather: name the service where it is shown. */
export const licence = { name: 'CC BY 4.0', identifier: 'CC-BY-4.0' } as const
