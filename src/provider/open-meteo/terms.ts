// The name and the licence of the service that speaks this protocol, for people who read the API reference.

export const serviceName = 'Open-Meteo'

export const serviceUrl = 'https://api.open-meteo.com'

/** Of the weather: name the service where it is shown. */
export const licence = { name: 'CC BY 4.0', identifier: 'CC-BY-4.0' } as const
