//! Short retries of calls that the apiserver refuses as overloaded. They are few, because a pass
//! holds a shared place meanwhile. The next pass repeats a call that fails for longer. (The
//! client's own retries, which are switched off, take up to eight minutes.)

use std::time::Duration;

use tokio::time::sleep;

/// Waits before the retries of a call.
const WAITS: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(800)];

/// Makes a call, and repeats it twice at most while the apiserver refuses it as overloaded.
pub async fn retried<T, F>(mut call: impl FnMut() -> F) -> Result<T, kube::Error>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    for wait in WAITS {
        match call().await {
            Err(error) if is_overload(&error) => sleep(wait).await,
            answer => return answer,
        }
    }
    call().await
}

/// 429 Too Many Requests, 503 Service Unavailable: nothing was carried out.
fn is_overload(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if matches!(status.code, 429 | 503))
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    async fn calls(codes: &[u16]) -> (usize, Result<(), u16>) {
        let mut made = 0;
        let answer = retried(|| {
            let code = codes[made];
            made += 1;
            async move {
                match code {
                    200 => Ok(()),
                    code => {
                        let status = Status::failure("no", "No").with_code(code);
                        Err(kube::Error::Api(status.boxed()))
                    }
                }
            }
        });
        let answer = answer.await.map_err(|error| match error {
            kube::Error::Api(status) => status.code,
            _ => 0,
        });
        (made, answer)
    }

    #[tokio::test(start_paused = true)]
    async fn an_overload_is_tried_three_times_and_nothing_else_is() {
        assert_eq!(calls(&[429, 503, 200]).await, (3, Ok(())));
        assert_eq!(calls(&[429, 429, 503]).await, (3, Err(503)));
        assert_eq!(calls(&[504]).await, (1, Err(504)));
        assert_eq!(calls(&[500]).await, (1, Err(500)));
        assert_eq!(calls(&[200]).await, (1, Ok(())));
    }
}
