//! Methods and associated functions, in plain and generic impl blocks.

use soul_client::soul_client;

pub(crate) const ROUTES: &[(&str, &str)] =
    &[("/associated", "find"), ("/by-value", "close"), ("/method", "save"), ("/same-name", "find")];

pub(crate) struct Orders<T> {
    pub(crate) saved: Vec<T>,
}

impl<T: Clone + Send> Orders<T> {
    #[soul_client(path = "/method")]
    pub(crate) async fn save(&mut self, order: T) -> usize {
        self.saved.push(order);
        self.saved.len()
    }

    #[soul_client(path = "/by-value")]
    pub(crate) fn close(self) -> Vec<T> {
        self.saved
    }
}

impl Orders<u8> {
    #[soul_client(path = "/associated")]
    pub(crate) fn find() -> Self {
        Self { saved: vec![8] }
    }
}

impl Orders<u16> {
    #[soul_client(path = "/same-name")]
    pub(crate) fn find() -> Self {
        Self { saved: vec![16] }
    }
}

#[tokio::test]
async fn methods_are_unchanged() {
    let mut orders = Orders::<u8>::find();
    assert_eq!(orders.save(9).await, 2);
    assert_eq!(orders.close(), [8, 9]);
    assert_eq!(Orders::<u16>::find().saved, [16]);
}
