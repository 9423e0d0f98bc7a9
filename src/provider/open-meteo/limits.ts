// What the provider allows: its free limits in weight, and how much one request may ask for. The simulator enforces these
// figures and the client keeps to them. The budget in force is configuration (provider.budget), because plans differ.

/** Weight per window of the free service, for one client address. */
export const freeLimits = { minute: 600, hour: 5_000, day: 10_000 } as const

/** Requests of one client address that run at once, and that wait for their turn, before more are refused. */
export const freeConcurrency = { running: 1, waiting: 4 } as const

/** A request that weighs more is refused whatever the windows hold. */
export const mostWeightPerRequest = 5_000

export const mostPointsPerRequest = 1_000

/** How far from today a request may reach, and the days it is answered with when it names none. */
export const mostPastDays = 92
export const mostForecastDays = 16
export const usualForecastDays = 7
