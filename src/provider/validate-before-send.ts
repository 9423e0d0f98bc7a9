// Validates a request right before it is sent. The process may be suspended for hours between the reservation of weight and
// the write to the connection. Separate because it knows undici's interceptors; the caller decides what is valid.

import type { Dispatcher } from 'undici'

/**
 * An interceptor that calls `isValid` once there is a connection, in the same turn of the event loop that writes the
 * request to it. If that is false, it sends nothing and fails the request with the error of `invalid`.
 */
export const validateBeforeSend =
  (isValid: () => boolean, invalid: () => Error): Dispatcher.DispatcherComposeInterceptor =>
  dispatch =>
  (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => {
        if (isValid()) handler.onRequestStart?.(controller, context)
        else controller.abort(invalid())
      },
      onRequestUpgrade: (...given) => handler.onRequestUpgrade?.(...given),
      onResponseStart: (...given) => handler.onResponseStart?.(...given),
      onResponseData: (...given) => handler.onResponseData?.(...given),
      onResponseEnd: (...given) => handler.onResponseEnd?.(...given),
      onResponseError: (...given) => handler.onResponseError?.(...given),
    })
