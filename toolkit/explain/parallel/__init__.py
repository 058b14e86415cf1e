"""All positions at once against one at a time: attention beside a recurrent network."""
